"use strict";
// Draws the learning curves of a report: mean and band over seeds, by Plotly.
// The numbers stand in the page as JSON; each chart has its controls beside it.

const STUDIES = JSON.parse(document.getElementById("data").textContent);
const SEED_OPACITY = 0.6;
const charts = [];

// --- numbers ---

function smoothed(values, width) {
  // mean over a window that shrinks at the ends, so that nothing is made up there
  if (width === 0) return values;
  return values.map((_, n) => {
    const reach = Math.min(width, n, values.length - 1 - n);
    let sum = 0;
    for (let k = n - reach; k <= n + reach; k++) sum += values[k];
    return sum / (2 * reach + 1);
  });
}

function meanAndInterval(seeds, reach, [least, most]) {
  // as in the tables: a 95 % t interval of the mean, within the range of the metric
  const mean = [], low = [], high = [];
  for (let n = 0; n < seeds[0].length; n++) {
    let sum = 0, squares = 0;
    for (const seed of seeds) sum += seed[n];
    const middle = sum / seeds.length;
    for (const seed of seeds) squares += (seed[n] - middle) ** 2;
    const half = reach === null ? 0 : reach * Math.sqrt(squares / (seeds.length - 1));
    mean.push(middle);
    low.push(Math.max(middle - half, least ?? -Infinity));
    high.push(Math.min(middle + half, most ?? Infinity));
  }
  return [mean, low, high];
}

// --- what Plotly draws ---

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colourOf(group) {
  return group.colour === "#000000" ? ink("--ink") : group.colour;
}

function faint(colour, alpha) {
  const [r, g, b] = [1, 3, 5].map((n) => parseInt(colour.slice(n, n + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}

function tracesOf(group, chart) {
  const seeds = group.values[chart.metric].map((values) => smoothed(values, chart.smoothing));
  const [mean, low, high] = meanAndInterval(seeds, group.reach, chart.study.ranges[chart.metric]);
  const colour = colourOf(group), x = group.steps;
  const quiet = { x, mode: "lines", hoverinfo: "skip", showlegend: false, type: "scatter" };
  const traces = [];
  const banded = group.reach !== null;
  if (banded) {
    traces.push({ ...quiet, y: low, line: { width: 0 } });
    traces.push({ ...quiet, y: high, line: { width: 0 }, fill: "tonexty",
      fillcolor: faint(colour, 0.15) });
  }
  if (seeds.length > 1) {
    const line = { color: colour, width: 0.8 };
    const opacity = chart.seeds || !banded ? SEED_OPACITY : 0; // few seeds are always shown
    for (const y of seeds) traces.push({ ...quiet, y, line, opacity, legendgroup: group.label });
  }
  const spread = banded ? " [%{customdata[0]:.2f}, %{customdata[1]:.2f}]" : "";
  traces.push({ x, y: mean, customdata: low.map((l, n) => [l, high[n]]), name: group.label, type: "scatter",
    mode: group.symbol ? "lines+markers" : "lines",
    marker: { symbol: group.symbol || "circle", color: colour, size: 8, maxdisplayed: 9 },
    line: { color: colour, width: 2.2, dash: group.dash }, meta: group.label,
    hovertemplate: `${group.label}: %{y:.2f}${spread}<br>at %{x:,}<extra></extra>` });
  if (group.authors.steps.length && chart.metric === chart.study.primary) {
    traces.push({ x: group.authors.steps, y: group.authors.values, type: "scatter", mode: "markers",
      marker: { symbol: "x-thin-open", color: colour, size: 8 }, showlegend: false,
      hovertemplate: `authors, ${group.label}: %{y:.1f} at %{x:,}<extra></extra>` });
  }
  return traces;
}

function layoutOf(chart) {
  const axis = { gridcolor: ink("--line"), linecolor: ink("--soft"), zeroline: false, automargin: true };
  return {
    autosize: true, hovermode: "closest", dragmode: "zoom",
    showlegend: Boolean(chart.width), // on paper, where there are no controls
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
    width: chart.width, margin: { l: 50, r: 12, t: 10, b: 45 },
    font: { color: ink("--ink"), size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: { ...axis, title: { text: chart.study.step } },
    yaxis: { ...axis, title: { text: chart.study.metrics[chart.metric] }, rangemode: "tozero" },
    uirevision: chart.metric,
  };
}

function draw(chart) {
  const shown = chart.study.groups.filter((group) => !chart.off.has(group.label));
  return Plotly.react(chart.place, shown.flatMap((group) => tracesOf(group, chart)), layoutOf(chart), {
    displaylogo: false, responsive: true, scrollZoom: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  });
}

function hover(chart, label, shown) {
  // only the style changes: to draw anew would take away what the pointer shows
  const few = chart.study.groups.some((g) => g.label === label && g.reach === null);
  if (chart.seeds || few || !label) return;
  const seeds = chart.place.data.flatMap((trace, n) => (trace.legendgroup === label ? [n] : []));
  if (seeds.length) Plotly.restyle(chart.place, { opacity: shown ? SEED_OPACITY : 0 }, seeds);
}

// --- controls ---

function connect(chart, controls) {
  for (const box of controls.querySelectorAll("[data-reward]")) {
    const set = () => chart.off[box.checked ? "delete" : "add"](box.dataset.reward);
    set(); // a browser may have kept its state from before
    box.addEventListener("change", () => { set(); draw(chart); });
  }
  const follow = (name, read) => {
    const control = controls.querySelector(`[data-control="${name}"]`);
    chart[name] = read(control);
    control.addEventListener("input", () => { chart[name] = read(control); draw(chart); });
  };
  follow("metric", (control) => control.value);
  follow("smoothing", (control) => Number(control.value));
  follow("seeds", (control) => control.checked);
}

function start() {
  STUDIES.forEach((study, n) => {
    const place = document.getElementById(`chart-${n}`);
    const chart = { study, place, off: new Set() };
    connect(chart, document.getElementById(`controls-${n}`));
    charts.push(chart);
  });
  drawNext(0);
}

function drawNext(n) {
  // one after the other, so that the page can be read and scrolled meanwhile
  if (n === charts.length) {
    document.documentElement.dataset.drawn = "yes";
    return;
  }
  draw(charts[n]).then(() => {
    for (const [event, shown] of [["plotly_hover", true], ["plotly_unhover", false]]) {
      charts[n].place.on(event, (told) => hover(charts[n], told.points[0].data.meta, shown));
    }
    setTimeout(() => drawNext(n + 1));
  });
}

// --- paper and darkness ---

function forPaper(printing) {
  document.querySelectorAll("details").forEach((box) => { if (printing) box.open = true; });
  for (const chart of charts) {
    chart.width = printing ? 660 : undefined;
    draw(chart);
  }
}

window.matchMedia("print").addEventListener("change", (query) => forPaper(query.matches));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(draw));
start();
