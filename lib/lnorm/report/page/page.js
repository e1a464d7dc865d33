'use strict';
// Starts the figures, sorts tables, selects rows, and follows the reader's theme. All else is in the specifications.
const dark = matchMedia('(prefers-color-scheme: dark)'), print = matchMedia('print');
const views = new Map();  // by the element that a figure is drawn in
const specOf = plot => JSON.parse(plot.parentElement.querySelector('script').textContent);
const exact = value => value === null || value === undefined ? 'not finite' : String(value);

function theme() {
  const light = print.matches || !dark.matches;
  const text = light ? '#333' : '#ddd', grid = light ? '#e4e4e4' : '#3a3a3a';
  return {
    axis: {labelColor: text, titleColor: text, tickColor: text, domainColor: text, gridColor: grid,
           titleFontWeight: 'normal', labelFontSize: 11, titleFontSize: 12},
    legend: {labelColor: text, titleColor: text, titleFontWeight: 'normal'},
    range: {
      category: light ? ['#0072b2', '#d55e00', '#00795a'] : ['#56b4e9', '#f0a03c', '#2fc79c'],
      diverging: light ? ['#053b6d', '#5a9ccb', '#f4f4f4', '#e0924b', '#7a3206']
                       : ['#8cc8f5', '#3c7fb5', '#202020', '#c06f2c', '#ffc58d'],
      heatmap: {scheme: 'viridis'},
    },
  };
}

const tip = Object.assign(document.createElement('div'), {className: 'tip', hidden: true});
document.body.append(tip);

function showTip(handler, event, item, value) {
  tip.hidden = !value;
  if (!value) return;
  tip.textContent = Object.entries(value).map(([key, of]) => key + ': ' + exact(of)).join('\n');
  const left = Math.min(event.pageX + 12, scrollX + innerWidth - tip.offsetWidth - 8);
  tip.style.transform = `translate(${Math.max(0, left)}px, ${event.pageY + 14}px)`;
}

function fill(details, plot) {
  const table = document.createElement('table'), head = table.createTHead().insertRow(), body = table.createTBody();
  const {columns} = specOf(plot).usermeta;
  head.append(...columns.map(({title}) => Object.assign(document.createElement('th'), {textContent: title, scope: 'col'})));
  for (const datum of views.get(plot).data('table')) {
    const row = body.insertRow();
    for (const {field} of columns) row.insertCell().textContent = exact(datum[field]);
  }
  details.querySelector('.scroll').replaceChildren(table);
}

function draw(plot) {
  const spec = specOf(plot), old = views.get(plot), {previousElementSibling: choice, nextElementSibling: details} = plot;
  if (old) { old.finalize(); choice.replaceChildren(); }
  const view = new vega.View(vega.parse(spec, theme(), {ast: true}), {
    expr: vega.expressionInterpreter, renderer: spec.usermeta.renderer, container: plot, bind: choice, hover: true});
  for (const {name, bind} of spec.signals ?? []) if (old && bind) view.signal(name, old.signal(name));
  if (plot.dataset.selected) view.signal('selected', Number(plot.dataset.selected));
  views.set(plot, view.tooltip(showTip).width(plot.clientWidth).run());
  if (details.open) fill(details, plot);
}

// A figure is drawn when it comes near the screen, or before the page is printed.
const plots = [...document.querySelectorAll('.plot')];
const missing = () => plots.filter(plot => !views.has(plot));
const seen = new IntersectionObserver(entries => entries.forEach(({isIntersecting, target}) => {
  if (isIntersecting && !views.has(target)) draw(target);
}), {rootMargin: '600px'});
const resized = new ResizeObserver(entries => entries.forEach(({target}) => {
  const view = views.get(target);
  if (view && view.width() !== target.clientWidth) view.width(target.clientWidth).run();
}));
for (const plot of plots) { seen.observe(plot); resized.observe(plot); }
for (const query of [dark, print]) query.addEventListener('change', () => [...views.keys()].forEach(draw));
addEventListener('beforeprint', () => missing().forEach(draw));
document.addEventListener('toggle', ({target}) => {
  const plot = target.parentElement.querySelector('.plot');
  if (!target.open || !plot) return;
  if (!views.has(plot)) draw(plot);
  fill(target, plot);
}, true);

function select({dataset: {row, label}}, section) {
  for (const other of section.querySelectorAll('button[data-row]')) other.setAttribute('aria-pressed', other.dataset.row === row);
  for (const name of section.querySelectorAll('.selected')) name.textContent = label;
  for (const plot of section.querySelectorAll('.plot[data-selected]')) {
    plot.dataset.selected = row;
    if (views.has(plot)) draw(plot);
  }
}

function sort(head, {tBodies: [body]}) {
  const down = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
  for (const other of head.parentElement.cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down > 0 ? 'ascending' : 'descending');
  const key = ({cells: {[head.cellIndex]: cell}}) => cell.dataset.value ?? cell.textContent;
  const order = new Intl.Collator('en', {numeric: true}).compare;
  const compare = (a, b) => isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) || order(a, b) : a - b;  // numbers come first
  body.append(...[...body.rows].sort((a, b) => down * compare(key(a), key(b))));
}

document.addEventListener('click', ({target}) => {
  if (target.matches('button[data-row]')) select(target, target.closest('section'));
  if (target.matches('th > button')) sort(target.parentElement, target.closest('table'));
});
