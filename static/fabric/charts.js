// Draws what `data-chart` points to: readings against a promise. The page's table says the same.
//
// The address answers {x: [seconds], series: [{name, kind, values}], unit, summary,
// promise: {value, tolerance_bps, direction} | null, gaps: [{from, to, label}], below: [{from, to, label}]}.
// A value that is null is a gap, never zero.
(() => {
  const DASH = { measured: [], second: [6, 4], third: [2, 3] };
  const WIDTH = { measured: 2, second: 1.5, third: 1.5 };
  const RIGHT = 104;

  // Tokens carry a light and a dark value, so the browser is asked what counts here and now.
  const readColours = (box) => {
    const probe = document.createElement("span");
    box.append(probe);
    const read = (name) => {
      probe.style.color = `var(--fx-${name})`;
      return getComputedStyle(probe).color;
    };
    const names = ["ink", "ink-2", "rule", "rule-2", "claimed", "claimed-soft", "measured", "second", "third", "short"];
    const colours = Object.fromEntries(names.map((name) => [name, read(name)]));
    colours.font = `12px ${getComputedStyle(box).fontFamily}`;
    probe.remove();
    return colours;
  };

  const hatch = (context, colour) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const draw = tile.getContext("2d");
    draw.strokeStyle = colour;
    draw.lineWidth = 1.2;
    draw.beginPath();
    draw.moveTo(0, 8);
    draw.lineTo(8, 0);
    draw.moveTo(-2, 2);
    draw.lineTo(2, -2);
    draw.moveTo(6, 10);
    draw.lineTo(10, 6);
    draw.stroke();
    return context.createPattern(tile, "repeat");
  };

  const bounds = (data) => {
    const all = data.series.flatMap((one) => one.values).filter((value) => value !== null);
    if (data.promise) {
      const slack = (Math.abs(data.promise.value) * data.promise.tolerance_bps) / 10000;
      all.push(data.promise.value, data.promise.value - slack);
      if (data.promise.direction !== "higher") all.push(data.promise.value + slack);
    }
    const low = Math.min(...all);
    const high = Math.max(...all);
    const room = (high - low || Math.abs(high) || 1) * 0.12;
    return [low - room, high + room];
  };

  // Everything that is not a line: tolerance, promise, gaps, what fell below, names at the right end.
  const annotate = (data, colours) => ({
    hooks: {
      drawClear: (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        if (data.promise) {
          const { value, tolerance_bps: bps, direction } = data.promise;
          const slack = (Math.abs(value) * bps) / 10000;
          const top = plot.valToPos(direction === "higher" ? value : value + slack, "y", true);
          const bottom = plot.valToPos(direction === "lower" ? value : value - slack, "y", true);
          ctx.fillStyle = colours["claimed-soft"];
          ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
          ctx.strokeStyle = colours.claimed;
          ctx.lineWidth = 1.5 * devicePixelRatio;
          ctx.setLineDash([7 * devicePixelRatio, 4 * devicePixelRatio]);
          ctx.beginPath();
          ctx.moveTo(bbox.left, plot.valToPos(value, "y", true));
          ctx.lineTo(bbox.left + bbox.width, plot.valToPos(value, "y", true));
          ctx.stroke();
        }
        ctx.fillStyle = hatch(ctx, colours["rule-2"]);
        for (const gap of data.gaps || []) {
          const from = Math.max(bbox.left, plot.valToPos(gap.from, "x", true));
          const to = Math.min(bbox.left + bbox.width, plot.valToPos(gap.to, "x", true));
          if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
        }
        ctx.restore();
      },
      draw: (plot) => {
        const { ctx, bbox } = plot;
        const scale = devicePixelRatio;
        ctx.save();
        ctx.font = colours.font.replace("12px", `${12 * scale}px`);
        ctx.fillStyle = colours.short;
        for (const part of data.below || []) {
          const from = plot.valToPos(part.from, "x", true);
          const to = plot.valToPos(part.to, "x", true);
          ctx.fillRect(from, bbox.top + bbox.height - 4 * scale, Math.max(to - from, 2 * scale), 4 * scale);
        }
        const labels = data.series
          .map((one) => {
            const last = one.values.findLast((value) => value !== null);
            return last === undefined ? null : { text: one.name, at: last, colour: colours[one.kind], bold: true };
          })
          .filter(Boolean);
        if (data.promise) {
          labels.push({ text: `promise ${data.promise.label || data.promise.value}`, at: data.promise.value, colour: colours.claimed, bold: true });
        }
        labels.forEach((label) => (label.y = plot.valToPos(label.at, "y", true)));
        labels.sort((a, b) => a.y - b.y);
        const step = 15 * scale;
        labels.forEach((label, index) => {
          if (index) label.y = Math.max(label.y, labels[index - 1].y + step);
        });
        ctx.textBaseline = "middle";
        ctx.textAlign = "left";
        for (const label of labels) {
          ctx.fillStyle = label.colour;
          ctx.font = `700 ${ctx.font.replace(/^700 /, "")}`;
          ctx.fillText(label.text, bbox.left + bbox.width + 8 * scale, label.y);
        }
        ctx.font = colours.font.replace("12px", `${12 * scale}px`);
        ctx.fillStyle = colours["ink-2"];
        ctx.textBaseline = "top";
        for (const gap of (data.gaps || []).slice(0, 3)) {
          const x = Math.min(plot.valToPos(gap.to, "x", true) + 4 * scale, bbox.left + bbox.width - ctx.measureText(gap.label).width);
          ctx.fillText(gap.label, x, bbox.top + 4 * scale);
        }
        ctx.restore();
      },
    },
  });

  // Hours in UTC, with seconds where the whole chart is minutes and with the day where it is days.
  const clock = (seconds, scale) => {
    const text = new Date(seconds * 1000).toISOString();
    const span = scale.max - scale.min;
    if (span > 172800) return `${text.slice(5, 10)} ${text.slice(11, 16)}`;
    return span < 1800 ? text.slice(11, 19) : text.slice(11, 16);
  };

  const options = (data, colours, box, say) => ({
    width: Math.max(box.clientWidth, 320),
    height: 250,
    padding: [12, RIGHT, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: true, y: false } },
    scales: { x: { time: true }, y: { range: () => bounds(data) } },
    axes: [
      { stroke: colours["ink-2"], font: colours.font, space: 80, values: (plot, ticks) => ticks.map((tick) => clock(tick, plot.scales.x)), grid: { stroke: colours.rule, width: 1 }, ticks: { show: false }, border: { show: true, stroke: colours["rule-2"], width: 1 } },
      { stroke: colours["ink-2"], font: colours.font, size: 64, grid: { stroke: colours.rule, width: 1 }, ticks: { show: false }, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en")) },
    ],
    series: [
      {},
      ...data.series.map((one) => ({
        label: one.name,
        stroke: colours[one.kind] || colours.measured,
        width: WIDTH[one.kind] || 2,
        dash: DASH[one.kind] || [],
        spanGaps: false,
        points: { show: data.x.length < 60, size: 4, fill: colours[one.kind] },
      })),
    ],
    plugins: [annotate(data, colours)],
    hooks: {
      setCursor: [
        (plot) => {
          const index = plot.cursor.idx;
          if (index === null || index === undefined) {
            say("");
            return;
          }
          const time = new Date(data.x[index] * 1000).toISOString().slice(11, 19);
          const parts = data.series.map((one) => `${one.name} ${one.values[index] === null ? "no reading" : one.values[index].toLocaleString("en")}`);
          say(`${time} UTC: ${parts.join(", ")}`);
        },
      ],
    },
  });

  class Chart {
    constructor(box) {
      this.box = box;
      this.note = document.createElement("p");
      this.note.className = "chart-note";
      this.width = 0;
      this.failed = false;
    }

    async load() {
      const answer = await fetch(this.box.dataset.chart, { headers: { Accept: "application/json" }, credentials: "same-origin" });
      if (!answer.ok) throw new Error(`chart data answered ${answer.status}`);
      this.data = await answer.json();
    }

    say(text) {
      this.note.textContent = text || this.caption();
    }

    caption() {
      const unit = this.data.unit ? `${this.data.unit}, ` : "";
      return `${unit}times in UTC. The scale starts where the readings need it.`;
    }

    draw() {
      this.plot?.destroy();
      const { data, box } = this;
      box.replaceChildren();
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", data.summary || "Readings against the promise");
      const drawn = data.series.some((one) => one.values.some((value) => value !== null));
      if (!drawn) {
        this.note.textContent = "No reading of this field yet.";
        box.append(this.note);
        return;
      }
      const colours = readColours(box);
      this.width = box.clientWidth;
      this.plot = new uPlot(options(data, colours, box, (text) => this.say(text)), [data.x, ...data.series.map((one) => one.values)], box);
      box.append(this.note);
      this.say("");
    }

    async refresh() {
      try {
        await this.load();
        this.failed = false;
        this.draw();
      } catch (error) {
        // The table is there; a chart that cannot load says so and is tried again.
        if (!this.failed && !this.plot) this.box.textContent = "The chart could not be loaded; the table has the same figures.";
        this.failed = true;
      }
    }

    watch() {
      document.addEventListener("fabric:theme", () => this.data && this.draw());
      new ResizeObserver(() => {
        if (this.plot && Math.abs(this.box.clientWidth - this.width) > 4) {
          this.width = this.box.clientWidth;
          this.plot.setSize({ width: Math.max(this.width, 320), height: 250 });
        }
      }).observe(this.box);
      const seconds = Number(this.box.dataset.chartRefresh || 0);
      if (seconds > 0) setInterval(() => document.hidden || !this.box.isConnected || this.refresh(), seconds * 1000);
    }
  }

  const start = (part) => {
    for (const box of part.querySelectorAll("[data-chart]:not([data-drawn])")) {
      box.dataset.drawn = "";
      const chart = new Chart(box);
      chart.refresh();
      chart.watch();
    }
  };
  document.addEventListener("DOMContentLoaded", () => start(document));
  document.addEventListener("htmx:afterSwap", (event) => start(event.target));
})();
