// Before the first paint: a person who follows the system gets the system's theme in Bootstrap too.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    if (root.dataset.theme === "system") root.dataset.bsTheme = dark.matches ? "dark" : "light";
    document.dispatchEvent(new CustomEvent("fabric:theme"));
  };
  dark.addEventListener("change", apply);
  apply();
})();
