// Shows values beside the pointer, switches series on and off, and switches between light and dark.
"use strict";
(() => {
  // In plots of fewer pixels, the values of all series have no room.
  const NARROW = 560;
  const root = document.documentElement;
  root.classList.add("live");

  const element = (parent, name, className) => {
    const child = document.createElement(name);
    child.className = className;
    parent.append(child);
    return child;
  };

  // The marks and bars of a plot: places in percent, and the three lines of their titles.
  const marksOf = (axes) => [...axes.querySelectorAll("[data-series] title")].map(({ parentNode: mark, textContent }) => {
    const number = (name) => parseFloat(mark.getAttribute(name)) || 0;
    const lines = textContent.split("\n");
    const value = lines.pop();
    return { x: number("x") + number("width") / 2, y: number("y"), group: mark.parentNode, place: lines.pop(), value };
  });

  for (const plot of document.querySelectorAll(".plot")) {
    const axes = plot.querySelector(".axes");
    const legend = plot.closest("figure").querySelector(".legend");
    const entry = (group) => legend.querySelector(`[data-series="${group.dataset.series}"]`);
    const marks = marksOf(axes);
    const box = element(plot, "div", "box");
    const line = element(plot, "i", "spike");
    const hide = () => {
      box.hidden = line.hidden = true;
    };
    hide();

    const show = ({ clientX, clientY }) => {
      const area = axes.getBoundingClientRect();
      const [x, y] = [clientX - area.left, clientY - area.top];
      const isNarrow = area.width < NARROW;
      const across = (mark) => Math.abs((mark.x / 100) * area.width - x);
      const distance = (mark) => (isNarrow ? Math.hypot(across(mark), (mark.y / 100) * area.height - y) : across(mark));
      const on = marks.filter(({ group }) => !group.classList.contains("off"));
      if (on.length === 0) {
        return hide();
      }
      const nearest = on.reduce((one, other) => (distance(other) < distance(one) ? other : one));
      const same = isNarrow ? [nearest] : on.filter(({ place }) => place === nearest.place);
      same.sort((one, other) => one.group.dataset.series - other.group.dataset.series);
      const middle = isNarrow ? nearest.x : same.reduce((sum, mark) => sum + mark.x, 0) / same.length;
      box.replaceChildren();
      element(box, "p", "").textContent = nearest.place;
      for (const { group, value } of same) {
        const row = element(box, "p", "");
        row.append(entry(group).querySelector("svg").cloneNode(true));
        element(row, "span", "").textContent = entry(group).textContent;
        element(row, "b", "").textContent = value;
      }
      box.hidden = line.hidden = false;
      // The box stands on the side with more room.
      const left = axes.clientLeft + area.left - plot.getBoundingClientRect().left + (middle / 100) * area.width;
      const isLeft = middle > 50;
      line.style.left = `${left}px`;
      box.style.left = isLeft ? "auto" : `${left + 12}px`;
      box.style.right = isLeft ? `${plot.clientWidth - left + 12}px` : "auto";
      box.style.maxWidth = `${(isLeft ? left : plot.clientWidth - left) - 14}px`;
    };
    plot.addEventListener("pointermove", show);
    plot.addEventListener("pointerdown", show);
    plot.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && hide());
    document.addEventListener("pointerdown", ({ target }) => plot.contains(target) || hide());

    legend.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button) {
        const isOn = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(isOn));
        axes.querySelectorAll(`[data-series="${button.dataset.series}"]`).forEach((group) => group.classList.toggle("off", !isOn));
      }
    });
  }

  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const theme = document.getElementById("theme");
  const offer = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    offer();
  });
  system.addEventListener("change", offer);
  theme.hidden = false;
  offer();
})();
