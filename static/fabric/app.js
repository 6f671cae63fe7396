// Small conveniences. Every act on every page also works without this file.
(() => {
  // "/" goes to the search box, unless somebody is writing.
  document.addEventListener("keydown", (event) => {
    const writing = /^(input|textarea|select)$/i.test(event.target.tagName) || event.target.isContentEditable;
    if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
    const find = document.getElementById("find");
    if (!find || find.offsetParent === null) return;
    event.preventDefault();
    find.focus();
  });

  // Copy buttons are hidden until they can work.
  const prepare = (part) => {
    for (const button of part.querySelectorAll("button[data-copy][hidden]")) {
      if (navigator.clipboard) button.hidden = false;
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    const told = button.querySelector("[data-told]") || button;
    const before = told.getAttribute("aria-label");
    told.setAttribute("aria-label", "Copied");
    button.dataset.copied = "";
    setTimeout(() => {
      if (before) told.setAttribute("aria-label", before);
      delete button.dataset.copied;
    }, 1500);
  });

  // A form that changes the world is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 4000);
  });

  // Filters that apply as they change keep their button for those without this file.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-apply]");
    if (form) form.requestSubmit();
  });

  // A tuck that an address points into opens, so that a link to a form shows the form.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const tuck = target && target.closest("details");
    if (tuck) {
      tuck.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  document.addEventListener("DOMContentLoaded", () => {
    prepare(document);
    open();
  });
  document.addEventListener("htmx:afterSwap", (event) => prepare(event.target));
  // Polling stops while nobody looks.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const timer = event.detail.requestConfig.triggeringEvent;
    if (document.hidden && !timer) event.preventDefault();
  });
})();
