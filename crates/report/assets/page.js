// Draws the figures of the page, switches series on and off, and switches between light and dark.
"use strict";
(() => {
  // Plots of fewer pixels have smaller letters and marks, and no tools.
  const NARROW = 560;
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")].map((place) => ({
    place,
    figure: figures[Number(place.dataset.plot)],
    legend: place.parentElement.querySelector(".legend"),
  }));

  // Colours come from the style sheet, which knows the theme.
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const named = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const translucent = (colour, share) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);

  const entry = (plot, series) => plot.legend.querySelector(`[data-series="${series}"]`);
  const isOn = (plot, series) => entry(plot, series).getAttribute("aria-pressed") === "true";

  function traces(plot, isNarrow) {
    return plot.figure.data.map((trace) => {
      const colour = getComputedStyle(entry(plot, trace.meta).querySelector("svg")).color;
      const copy = { ...trace, visible: isOn(plot, trace.meta), showlegend: false };
      if (isNarrow && trace.hovertemplate) {
        copy.hovertemplate = `%{x}: ${trace.hovertemplate}`;
      }
      if (trace.fill) {
        return { ...copy, fillcolor: translucent(colour, 0.2), line: { ...trace.line, color: colour } };
      }
      if (trace.line) {
        copy.line = { ...trace.line, color: colour };
      }
      if (trace.type === "bar") {
        return { ...copy, marker: { color: colour } };
      }
      const size = trace.marker && trace.marker.size * (isNarrow ? 0.75 : 1);
      const outline = { width: 1, ...(trace.marker && trace.marker.line), color: colour };
      copy.marker = { ...trace.marker, size, color: colour, line: outline };
      return copy;
    });
  }

  // Every n-th tick, so that labels of this many pixels do not meet.
  function thinned(axis, pixels, label) {
    if (!axis.tickvals || axis.tickvals.length < 3) {
      return axis;
    }
    const most = Math.max(2, Math.floor(pixels / label));
    const step = Math.ceil(axis.tickvals.length / most);
    const kept = (all) => all.filter((_, at) => at % step === 0);
    return { ...axis, tickvals: kept(axis.tickvals), ticktext: kept(axis.ticktext) };
  }

  function layout(plot, width) {
    const isNarrow = width < NARROW;
    const own = plot.figure.layout;
    const lines = { gridcolor: named("rule"), linecolor: named("faint"), zerolinecolor: named("rule"), automargin: true };
    const longest = Math.max(0, ...(own.xaxis.ticktext || []).map((text) => text.length));
    return {
      ...own,
      xaxis: {
        ...thinned(own.xaxis, width - 60, Math.max(46, longest * 8)),
        ...lines,
        title: { ...own.xaxis.title, standoff: 8 },
        showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "dot", spikecolor: named("faint"),
        tickangle: 0,
      },
      yaxis: { ...own.yaxis, ...lines },
      shapes: (own.shapes || []).map((shape) => ({ ...shape, fillcolor: named("shade") })),
      margin: { l: 48, r: 12, t: isNarrow ? 12 : 28, b: 44 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: named("faint"), activecolor: named("ink") },
      paper_bgcolor: named("ground"),
      plot_bgcolor: named("ground"),
      font: { family: getComputedStyle(document.body).fontFamily, size: isNarrow ? 12 : 13, color: named("ink") },
      // The values of all series in one box need room.
      hovermode: isNarrow ? "closest" : "x unified",
      hoverlabel: { bgcolor: named("raised"), bordercolor: named("rule"), font: { color: named("ink") }, namelength: isNarrow ? 12 : 40 },
      dragmode: isNarrow ? false : "zoom",
      showlegend: false,
    };
  }

  const config = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };

  function draw(plot) {
    const width = plot.place.clientWidth;
    plot.width = width;
    const isNarrow = width < NARROW;
    return Plotly.react(plot.place, traces(plot, isNarrow), layout(plot, width), { ...config, displayModeBar: !isNarrow });
  }

  function redraw() {
    plots.forEach(draw);
  }

  for (const plot of plots) {
    plot.legend.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        draw(plot);
      }
    });
    new ResizeObserver(() => {
      if (plot.place.clientWidth !== plot.width) {
        draw(plot);
      }
    }).observe(plot.place);
  }

  const theme = document.getElementById("theme");
  const offer = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    offer();
    redraw();
  });
  system.addEventListener("change", () => {
    offer();
    redraw();
  });
  theme.hidden = false;
  offer();
  redraw();
})();
