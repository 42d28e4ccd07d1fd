"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  prefersDark.addEventListener("change", label);
  label();

  const links = new Map([...document.querySelectorAll("nav.aside a")].map((link) => [link.hash.slice(1), link]));
  const here = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (link && entry.isIntersecting) {
        links.forEach((other) => other.removeAttribute("aria-current"));
        link.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => here.observe(section));

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.fold:not([open]):not(.bulk)")];
    folded.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));
})();
