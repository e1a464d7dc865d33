#!/usr/bin/python3
"""Opens the pages of lnorm in a real browser, without a network, and looks at what they show.

page_test.py LNORM FOLDER: the program, and where pages and pictures of them are put.
page_test.py LNORM FOLDER PageTest.test_set: one of the tests.
page_test.py LNORM FOLDER --picture PNG: the picture of a report that README shows, and no tests."""

import array
import base64
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import time
import unicodedata
import unittest

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LNORM, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DATA = os.path.join(os.path.dirname(__file__), '..', '..', 'data')
WIDTHS = (1280, 400)
# Names, codes of array, and the step between elements.
TINY_AND_HUGE = (('1e-310', 'd', 1e-310), ('5e-324', 'd', 5e-324), ('1e-42', 'f', 1e-42), ('6e-8', 'f', 2.0 ** -24),
                 ('1e305', 'd', 1e305))
ATTACK = '</script><img src=x onerror=alert(1)>'


def path(name):
    return os.path.join(FOLDER, name)


def lnorm(*arguments, status=0):
    """What it prints."""
    done = subprocess.run([LNORM, *arguments], capture_output=True, text=True, cwd=FOLDER, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout


def write_npy(name, shape, values, code='f'):
    header = "{'descr': '<f%d', 'fortran_order': False, 'shape': %s, }" % (array.array(code).itemsize, tuple(shape))
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(path(name), 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        array.array(code, values).tofile(file)


def make_data():
    random.seed(1)
    x = [random.gauss(0, 1) * (1 + i // 40 % 7) for i in range(30 * 40)]
    write_npy('x.npy', (30, 40), x)
    y = [v + (1e-3 if 400 <= i < 440 else 1e-6 * (i % 3)) for i, v in enumerate(x)]
    y[5] = math.nan
    write_npy('y.npy', (30, 40), y)
    write_npy('long.npy', (5000, 900), (random.gauss(0, 1 + i % 4) for i in range(5000 * 900)))
    # Two rows and two elements a cell; a row of infinity, and one NaN.
    x = [random.gauss(0, 1) for i in range(192 * 256)]
    x[10 * 256:11 * 256] = [math.inf] * 256
    x[100 * 256 + 7] = math.nan
    x[0] = -9
    write_npy('holes.npy', (192, 256), x)
    write_npy('ones.npy', (192, 256), [1] * (192 * 256))
    for name, code, step in TINY_AND_HUGE:
        x = [random.randint(-9, 9) * step for i in range(30 * 40)]
        write_npy(name + '.npy', (30, 40), x, code)
        x[7] += step
        write_npy(name + '2.npy', (30, 40), x, code)
        with open(path(name + '-set.json'), 'w', encoding='utf-8') as file:
            json.dump({'a': [x[:40]], 'b': [x[40:80]]}, file)
    tensors = {'h.%d' % i: [[random.gauss(i, 1 + i) for _ in range(24)] for _ in range(9)] for i in range(8)}
    with open(path('set.json'), 'w', encoding='utf-8') as file:
        json.dump(tensors, file)
    tensors['h.3'][3][2] += 1
    tensors['h.6'][0] = [2 * v for v in tensors['h.6'][0]]
    with open(path('set2.json'), 'w', encoding='utf-8') as file:
        json.dump(tensors, file)
    with open(path('attack.json'), 'w', encoding='utf-8') as file:
        json.dump({ATTACK: [[1, 2, 4], [3, 3, 9]], '"&\u2028': [[1, 2, 3]]}, file)


class Browser:
    def __init__(self):
        options = Options()
        options.binary_location = '/usr/bin/chromium'
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
                         '--disable-dev-shm-usage', '--force-color-profile=srgb'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)
        self.driver.execute_cdp_cmd('Network.enable', {})
        self.driver.execute_cdp_cmd('Network.emulateNetworkConditions', {
            'offline': True, 'latency': 0, 'downloadThroughput': 0, 'uploadThroughput': 0})

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def resize(self, width, height, scale=1):
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': height, 'deviceScaleFactor': scale, 'mobile': False})

    def media(self, scheme, media=''):
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'media': media, 'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})

    def open(self, name, width=1280):
        """Opens a page and waits until all of its figures are drawn, which are drawn as they are scrolled to."""
        self.resize(width, 900)
        self.driver.get('file://' + path(name))
        self.draw_all()

    def draw_all(self):
        for _ in range(100):
            if self.js('const left = missing(); left[0]?.scrollIntoView(); return left.length') == 0:
                break
            time.sleep(0.05)
        self.js('scrollTo(0, 0)')

    def errors(self):
        return [entry['message'] for entry in self.driver.get_log('browser')]

    def picture(self, name, height=None, scale=1):
        width = self.js('return innerWidth')
        height = height or min(12000, self.js('return document.documentElement.scrollHeight'))
        self.resize(width, height, scale)
        time.sleep(0.3)
        with open(path(name), 'wb') as file:
            file.write(self.driver.get_screenshot_as_png())


# Of the first figure whose id ends so: the marks with a name, as Vega has drawn them.
MARKS = '''
const [end, name] = arguments;
const view = views.get(document.querySelector(`figure[id$="${end}"] .plot`));
const found = view.scenegraph().root.items[0].items.find(mark => mark.name === name);
return found.items.map(({bounds: b}) => [b.x1, b.y1, b.x2, b.y2]);
'''
# The size of its plot.
SIZE = '''
const view = views.get(document.querySelector(`figure[id$="${arguments[0]}"] .plot`));
return [view.signal('width'), view.signal('height')];
'''
# Its numbers, from the table that is unfolded for them.
TABLE = '''
const details = document.querySelector(`figure[id$="${arguments[0]}"] details`);
details.querySelector('summary').click();
return new Promise(resolve => setTimeout(() => resolve(
  [...details.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.textContent))), 50));
'''
# Of a table by the beginning of its caption: the rows, each cell as what it is sorted by.
CELLS = '''
const table = [...document.querySelectorAll('table')].find(
  ({caption}) => caption && caption.textContent.startsWith(arguments[0]));
return [...table.tBodies[0].rows].map(row => [...row.cells].map(c => c.dataset.value ?? c.textContent));
'''


# Of every figure: its id, and of each of its scales that has numbers the title and the labels, with the values that Vega
# has them for.
LABELS = '''
const shown = group => group.items.flatMap(item => item.items ?? []);
return plots.flatMap(plot => views.get(plot).scenegraph().root.items[0].items.flatMap(mark => mark.items)
  .filter(({mark: {role}}) => role === 'axis' || role === 'legend').map(group => {
    const marks = [], walk = mark => { marks.push(mark); for (const {items} of mark.items) items?.forEach(walk); };
    group.items.forEach(walk);
    const texts = role => marks.filter(mark => mark.role.endsWith(role)).flatMap(mark => mark.items);
    return {figure: plot.parentElement.id, title: texts('-title')[0]?.text,
      labels: texts('-label').filter(({text, opacity}) => text !== '' && opacity !== 0).map(({text, datum}) => [text, datum.value])};
  }).filter(({labels}) => labels.length === 0 || labels.every(([, value]) => typeof value === 'number')));
'''
# The color in which a canvas has the middle of a mark.
PIXEL = '''
const [end, number] = arguments, plot = document.querySelector(`figure[id$="${end}"] .plot`), view = views.get(plot);
const {bounds: b} = view.scenegraph().root.items[0].items.find(mark => mark.name === 'cells').items[number];
const canvas = plot.querySelector('canvas'), [dx, dy] = view.origin(), ratio = canvas.width / canvas.clientWidth;
const one = new OffscreenCanvas(1, 1).getContext('2d');
one.drawImage(canvas, -Math.floor(((b.x1 + b.x2) / 2 + dx) * ratio), -Math.floor(((b.y1 + b.y2) / 2 + dy) * ratio));
return [...one.getImageData(0, 0, 1, 1).data];
'''


class PageTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        os.makedirs(FOLDER, exist_ok=True)
        make_data()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.driver.quit()

    def js(self, script, *arguments):
        return self.browser.js(script, *arguments)

    def marks(self, figure, name):
        return self.js(MARKS, figure, name)

    def table(self, figure):
        """The numbers of a figure: rows by the titles of the columns."""
        head, *rows = self.js(TABLE, figure)
        return [dict(zip(head, row)) for row in rows]

    def check_page(self, name):
        """What holds of every page: nothing fails, nothing is fetched, all can be reached and read."""
        for width in WIDTHS:
            self.browser.open(name, width)
            self.assertEqual(self.browser.errors(), [])
            self.assertEqual(self.js('return performance.getEntriesByType("resource").length'), 0)
            self.assertGreater(self.js('return plots.length'), 0)
            self.assertEqual(self.js('return missing().length'), 0)
            # Nothing is wider than the screen.
            self.assertLessEqual(self.js('return document.documentElement.scrollWidth'), width)
            self.assertEqual(self.js('''return plots.filter(plot => {
              const {width, height} = plot.firstElementChild.getBoundingClientRect();
              return width < 100 || height < 60 || width > plot.clientWidth + 1; }).length'''), 0)
            self.browser.picture('%s-%d.png' % (name.removesuffix('.html'), width))
        self.assertEqual(self.js('''return [...document.querySelectorAll('figure')].filter(figure =>
          !figure.querySelector('figcaption')?.textContent || !figure.querySelector('.plot').ariaLabel).length'''), 0)
        # Axes have titles, but for names of tensors.
        self.assertEqual(self.js('''return [...views.values()].flatMap(view => view.scenegraph().root.items[0].items)
          .filter(({role}) => role === 'axis').filter(({items: [axis]}) => axis.datum.title &&
            !axis.items.some(({role}) => role === 'axis-title')).length'''), 0)
        self.assertEqual(self.js('''for (const summary of document.querySelectorAll('figure summary')) summary.click();
          return new Promise(resolve => setTimeout(() => resolve([...document.querySelectorAll('table')].filter(table =>
            table.querySelectorAll('thead th[scope=col]').length === 0 || table.querySelectorAll('tbody tr').length === 0
          ).length), 200))'''), 0)
        self.assertEqual(self.js('''return [...document.querySelectorAll('button, a, summary, .scroll')].filter(
          element => element.tabIndex < 0).length'''), 0)
        self.assertEqual(self.js('return new Set([...document.querySelectorAll("[id]")].map(({id}) => id)).size'),
                         self.js('return document.querySelectorAll("[id]").length'))
        self.assertEqual(self.browser.errors(), [])

    # ---- One tensor.

    def test_tensor(self):
        lnorm('report', 'x.npy', '--softmax', '-o', 'tensor.html')
        self.check_page('tensor.html')
        self.browser.open('tensor.html')
        stats = json.loads(lnorm('stats', 'x.npy', '--softmax', '--json'))
        rows = {name: row for name, *row in self.js(CELLS, 'Over the rows')}
        for tensor in ('input', 'output', 'softmax'):
            for name, column in stats['summary'][tensor].items():
                with self.subTest(tensor=tensor, name=name):
                    self.assertEqual([float(v) for v in rows[tensor + ' ' + name]],
                                     [column['min'], column['median'], column['max']])
        for figure, tensor in (('-x-mean', 'input'), ('-y-mean', 'output')):
            with self.subTest(figure=figure):
                self.assertEqual([float(row['value']) for row in self.table(figure)],
                                 [row[tensor]['mean'] for row in stats['rows']])
        for figure, tensor in (('-x-std', 'input'), ('-y-std', 'output')):
            with self.subTest(figure=figure):
                self.assertEqual([float(row['value']) for row in self.table(figure)],
                                 [math.sqrt(row[tensor]['variance']) for row in stats['rows']])
        bars = self.table('-distribution')
        self.assertEqual(sum(int(bar['before']) for bar in bars), 30 * 40)
        self.assertEqual(sum(int(bar['after']) for bar in bars), 30 * 40)

    def test_tensor_marks(self):
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        self.browser.open('tensor.html')
        bars = self.table('-distribution')
        width, height = self.js(SIZE, '-distribution')
        for series in ('before', 'after'):
            marks = self.marks('-distribution', series)
            self.assertEqual(len(marks), len(bars))
            # Bars follow each other from border to border, and are as high as their counts say.
            self.assertAlmostEqual(marks[0][0], 0, delta=1)
            self.assertAlmostEqual(marks[-1][2], width, delta=1)
            counts = [int(bar[series]) for bar in bars]
            heights = [mark[3] - mark[1] for mark in marks]
            scale = max(heights) / max(counts)
            for count, high in zip(counts, heights):
                self.assertAlmostEqual(count * scale, high, delta=1)
            self.assertLessEqual(max(heights), height + 1)
        points = self.marks('-x-mean', 'points')
        values = [float(row['value']) for row in self.table('-x-mean')]
        self.assertEqual(len(points), 30)
        # Points go from left to right, and higher means higher.
        self.assertEqual(points, sorted(points))
        order = sorted(range(30), key=lambda i: values[i])
        self.assertEqual(order, sorted(range(30), key=lambda i: (-points[i][1], values[i])))
        cells = self.marks('-x-map', 'cells')
        width, height = self.js(SIZE, '-x-map')
        self.assertEqual(len(cells), 30 * 40)
        self.assertAlmostEqual(max(cell[2] for cell in cells), width, delta=1)
        self.assertAlmostEqual(max(cell[3] for cell in cells), height, delta=1)
        # The cells of a small tensor are its elements.
        elements = json.loads(lnorm('x.npy', '--to', 'json'))
        shown = [float(row['value']) for row in self.table('-y-map')]
        self.assertEqual(shown, [value for row in elements for value in row])

    def test_features(self):
        lnorm('report', 'holes.npy', '-o', 'features.html')
        self.browser.open('features.html')
        stats = json.loads(lnorm('stats', 'holes.npy', '--features', '--json'))
        largest = [feature['absmax'] for feature in stats['features']]
        self.assertEqual([float(row['value']) for row in self.table('-features')], largest)
        self.assertEqual(len(self.marks('-features', 'points')), 256)
        rows = self.js(CELLS, 'Features that stand out')
        order = sorted(range(256), key=lambda i: -largest[i])
        self.assertEqual([int(row[1]) for row in rows if row[0] == 'largest |x|'], order[:5])
        self.assertEqual(float(rows[0][4]), max(largest))

    def test_select_row(self):
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        self.browser.open('tensor.html')
        elements = json.loads(lnorm('x.npy', '--to', 'json'))
        softmax = json.loads(lnorm('softmax', 'x.npy', '--to', 'json'))
        self.js('document.querySelectorAll("figure[id*=row-] details summary").forEach(s => s.click())')
        buttons = self.browser.driver.find_elements(By.CSS_SELECTOR, 'button[data-row]')
        self.assertGreater(len(buttons), 5)
        for how in ('click', 'key'):
            button = buttons[3] if how == 'click' else buttons[-1]
            row = int(button.text)
            if how == 'click':
                button.click()
            else:
                button.send_keys(Keys.ENTER)
            time.sleep(0.2)
            self.assertEqual(button.get_attribute('aria-pressed'), 'true')
            self.assertEqual(self.js('return document.querySelector(".selected").textContent'), str(row))
            for figure, expected in (('-row-y', elements), ('-row-softmax', softmax)):
                shown = self.js('''return [...document.querySelectorAll(`figure[id$="${arguments[0]}"] tbody tr`)].map(
                  row => Number(row.cells[1].textContent))''', figure)
                self.assertEqual(shown, expected[row])
                self.assertEqual(len(self.marks(figure, 'points')), 40)
        self.assertEqual(self.browser.errors(), [])

    def test_long(self):
        """More rows and elements than a page has room for."""
        lnorm('report', 'long.npy', '-o', 'long.html')
        self.assertLess(os.path.getsize(path('long.html')), 3_000_000)
        self.check_page('long.html')
        self.browser.open('long.html')
        bands = self.table('-x-mean')
        self.assertEqual(sum(int(band['rows']) for band in bands), 5000)
        self.assertEqual([int(band['from row']) for band in bands],
                         [sum(int(b['rows']) for b in bands[:i]) for i in range(len(bands))])
        stats = json.loads(lnorm('stats', 'long.npy', '--json'))
        means = [row['input']['mean'] for row in stats['rows']]
        for band in bands:
            first, count = int(band['from row']), int(band['rows'])
            here = sorted(means[first:first + count])
            middle = here[count // 2] if count % 2 else (here[count // 2 - 1] / 2 + here[count // 2] / 2)
            self.assertEqual([float(band[k]) for k in ('min', 'median', 'max')], [here[0], middle, here[-1]])
        cells = self.table('-x-map')
        self.assertEqual(sum(int(cell['rows']) * int(cell['elements']) for cell in cells), 5000 * 900)
        standouts = self.js(CELLS, 'Rows that stand out')
        largest = sorted(range(5000), key=lambda r: -abs(means[r]))[:5]
        self.assertEqual([int(row[1]) for row in standouts if row[0] == 'largest |mean|'], largest)

    def hover(self, figure, number):
        """The tooltip of a cell."""
        x, y = self.js('''const [end, number] = arguments, plot = document.querySelector(`figure[id$="${end}"] .plot`);
          plot.scrollIntoView({block: 'center'});
          const view = views.get(plot), [dx, dy] = view.origin(), {left, top} = plot.getBoundingClientRect();
          const {bounds: b} = view.scenegraph().root.items[0].items.find(mark => mark.name === 'cells').items[number];
          return [left + dx + (b.x1 + b.x2) / 2, top + dy + (b.y1 + b.y2) / 2];''', figure, number)
        self.browser.driver.execute_cdp_cmd('Input.dispatchMouseEvent', {'type': 'mouseMoved', 'x': x, 'y': y})
        time.sleep(0.2)
        return self.js('return document.querySelector(".tip").textContent').split('\n')

    def legend_title(self, figure):
        return [entry['title'] for entry in self.js(LABELS) if entry['figure'].endswith(figure)][-1]

    def choose(self, figure, label):
        for element in self.browser.driver.find_elements(By.CSS_SELECTOR, 'figure[id$="%s"] .choice label' % figure):
            if element.text == label:
                element.click()
        time.sleep(0.3)

    def test_choice_of_heat_map(self):
        """The mean or max |x| of cells; those with NaN or infinity are gray in both."""
        lnorm('report', 'holes.npy', '-o', 'holes.html')
        self.check_page('holes.html')
        self.browser.open('holes.html')
        gray = [138, 138, 138, 255]
        infinite, hole, large = 5 * 128 + 40, 50 * 128 + 3, 0
        for figure, letter in (('-x-map', 'x'), ('-y-map', 'y')):
            with self.subTest(figure=figure):
                self.assertIn('Gray: NaN or infinity', self.js(
                    'return document.querySelector(`figure[id$="${arguments[0]}"] figcaption`).textContent', figure))
                table = self.table(figure)
                self.assertEqual({row['not finite'] for row in table[5 * 128:6 * 128]}, {'2'})
                self.assertEqual(table[hole]['not finite'], '1' if letter == 'x' else '2')
                self.assertEqual(sum(int(row['not finite']) > 0 for row in table), 128 + (1 if letter == 'x' else 128))
                title = 'max |%s|' % letter
                self.assertEqual(self.legend_title(figure), 'mean')
                before = self.js(PIXEL, figure, large)
                tip = self.hover(figure, large)
                self.assertEqual(tip[:4], ['row: 0', 'rows: 2', 'element: 0', 'elements: 2'])
                self.assertEqual(tip[4:], ['mean: ' + table[large]['mean']])
                for name in ('mean', title):
                    self.choose(figure, name)
                    self.assertEqual(self.legend_title(figure), name)
                    self.assertEqual(self.js(PIXEL, figure, infinite), gray)
                    self.assertEqual(self.js(PIXEL, figure, hole), gray)
                    self.assertNotEqual(self.js(PIXEL, figure, large), gray)
                    self.assertEqual(self.hover(figure, infinite)[-2:],
                                     [name + ': ' + table[infinite][name], 'not finite: 2'])
                self.assertNotEqual(self.js(PIXEL, figure, large), before)
                self.assertEqual(self.hover(figure, large)[4:], [title + ': ' + table[large][title]])
                self.browser.picture('holes%s.png' % figure)
                # A change of the theme keeps what was chosen.
                self.browser.media('dark')
                time.sleep(0.3)
                self.assertEqual(self.legend_title(figure), title)
                self.assertEqual(len(self.browser.driver.find_elements(
                    By.CSS_SELECTOR, 'figure[id$="%s"] .choice input' % figure)), 2)
                self.browser.media('light')
                self.browser.open('holes.html')
        self.assertEqual(float(self.table('-x-map')[0]['max |x|']), 9)
        # In a map of elements it is |x|.
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        self.browser.open('tensor.html')
        self.choose('-x-map', '|x|')
        table = self.table('-x-map')
        self.assertEqual([float(row['|x|']) for row in table], [abs(float(row['value'])) for row in table])
        self.assertEqual(self.hover('-x-map', 3), ['row: 0', 'element: 3', '|x|: ' + table[3]['|x|']])
        self.assertEqual(self.browser.errors(), [])

    def test_choice_in_a_notebook(self):
        """The specification by itself has the choice."""
        lnorm('report', 'holes.npy', '-o', 'holes.html', '--spec', 'specs')
        with open(path('specs/tensor-x-map.vg.json'), encoding='utf-8') as file:
            spec = json.load(file)
        self.browser.open('holes.html')
        domains = self.js('''const place = document.createElement('div'), domains = [];
          document.body.append(place);
          const view = new vega.View(vega.parse(arguments[0], {}, {ast: true}),
            {expr: vega.expressionInterpreter, container: place}).run();
          for (const input of place.querySelectorAll('input')) {
            input.click();
            domains.push([view.run().signal('shown'), ...view.scale('color').domain()]);
          }
          return domains;''', spec)
        self.assertEqual([name for name, *_ in domains], ['mean', 'max'])
        self.assertEqual(domains[0][1], -domains[0][3])
        self.assertEqual(domains[1][1:], [0, 0, 9])
        self.assertEqual(self.browser.errors(), [])

    def check_labels(self):
        """Every scale has labels that differ and say what they are for, in what its title says."""
        for scale in self.js(LABELS):
            with self.subTest(**scale):
                texts = [text for text, _ in scale['labels']]
                self.assertGreater(len(texts), 1)
                self.assertEqual(len(set(texts)), len(texts))
                values = [value for _, value in scale['labels']]
                most = max(map(abs, values))
                for text, value in scale['labels']:
                    number = float(text.replace('\u2212', '-').replace('%', 'e-2'))
                    self.assertAlmostEqual(number / most, value / most, delta=0.006)
                    self.assertLess(len(text), 20)

    def test_tiny_and_huge(self):
        """Axes and legends of numbers from the least to the greatest that there are."""
        for name, _, step in TINY_AND_HUGE:
            with self.subTest(name=name):
                lnorm('report', name + '.npy', '-o', 'tiny.html')
                self.browser.open('tiny.html')
                self.check_labels()
                self.browser.picture('tiny%s.png' % name)
                # Points are where the labels say that their values are.
                labels = next(scale['labels'] for scale in self.js(LABELS)
                              if scale['figure'].endswith('-x-mean') and scale['title'].startswith('mean'))
                title = next(scale['title'] for scale in self.js(LABELS)
                             if scale['figure'].endswith('-x-mean') and scale['title'].startswith('mean'))
                power = float(title.partition(' in 1e')[2] or 0)
                low, high = self.js('''const view = views.get(document.querySelector('figure[id$="-x-mean"] .plot'));
                  const scale = view.scale('y'), height = view.signal('height');
                  return [scale.invert(height), scale.invert(0)]''')
                height = self.js(SIZE, '-x-mean')[1]
                self.assertGreaterEqual(len(labels), 3)
                for row, mark in zip(self.table('-x-mean'), self.marks('-x-mean', 'points')):
                    value = float(row['value']) * 10.0 ** min(300, -power) * 10.0 ** max(0, -power - 300)
                    self.assertAlmostEqual((mark[1] + mark[3]) / 2, height * (high - value) / (high - low), delta=1)
                lnorm('report', name + '-set.json', '-o', 'tiny.html')
                self.browser.open('tiny.html')
                self.check_labels()
                lnorm('compare', name + '2.npy', name + '.npy', '--max-abs', '0', '--page', 'tiny.html', status=1)
                self.browser.open('tiny.html')
                self.check_labels()
                self.browser.picture('tiny%s-comparison.png' % name)
                self.assertEqual(self.browser.errors(), [])

    def test_theme_and_print(self):
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        self.browser.open('tensor.html')
        back = 'return getComputedStyle(document.body).backgroundColor'
        fill = 'return document.querySelector(".plot svg text").getAttribute("fill")'
        light = self.js(back), self.js(fill)
        self.browser.media('dark')
        time.sleep(0.3)
        dark = self.js(back), self.js(fill)
        self.assertNotEqual(light[0], dark[0])
        self.assertNotEqual(light[1], dark[1])
        self.browser.picture('tensor-dark.png')
        self.browser.media('dark', 'print')
        time.sleep(0.3)
        self.assertEqual((self.js(back), self.js(fill)), light)
        self.browser.media('light')
        self.browser.driver.refresh()
        printed = base64.b64decode(self.browser.driver.execute_cdp_cmd('Page.printToPDF', {})['data'])
        with open(path('tensor.pdf'), 'wb') as file:
            file.write(printed)
        self.assertEqual(self.js('return missing().length'), 0)  # what was never scrolled to is printed as well
        self.assertEqual(self.browser.errors(), [])

    def test_tooltip(self):
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        self.browser.open('tensor.html')
        mean = self.table('-x-mean')[7]['value']
        x, y = self.js('''const plot = document.querySelector('figure[id$="-x-mean"] .plot');
          plot.scrollIntoView({block: 'center'});
          const view = views.get(plot), [dx, dy] = view.origin(), {left, top} = plot.getBoundingClientRect();
          const {bounds: b} = view.scenegraph().root.items[0].items.find(mark => mark.name === 'points').items[7];
          return [left + dx + (b.x1 + b.x2) / 2, top + dy + (b.y1 + b.y2) / 2];''')
        self.browser.driver.execute_cdp_cmd('Input.dispatchMouseEvent', {'type': 'mouseMoved', 'x': x, 'y': y})
        time.sleep(0.2)
        self.assertEqual(self.js('return document.querySelector(".tip").textContent'),
                         'row: 7\nvalue: ' + mean)

    def test_names_are_harmless(self):
        lnorm('report', 'attack.json', '-o', 'attack.html')
        lnorm('compare', 'attack.json', 'attack.json', '--page', 'attack-compare.html')
        for name in ('attack.html', 'attack-compare.html'):
            self.browser.open(name)
            self.assertEqual(self.browser.errors(), [])
            self.assertEqual(self.js('return document.images.length'), 0)
            self.assertIn(ATTACK, self.js('return document.body.textContent'))
        # A file's name is in the title.
        os.replace(path('x.npy'), path('<b>&x.npy'))
        try:
            lnorm('report', '<b>&x.npy', '-o', 'attack.html')
        finally:
            os.replace(path('<b>&x.npy'), path('x.npy'))
        self.browser.open('attack.html')
        self.assertEqual(self.browser.driver.title, '<b>&x.npy')
        self.assertEqual(self.js('return document.querySelectorAll("b").length'), 0)

    def test_any_name(self):
        """Names from the whole of Unicode are told apart, and a page is what HTML allows."""
        points = [*range(0x300), *range(0x2000, 0x2070), *range(0xfdcf, 0xfdf1), 0xd7ff, 0xe000,
                  *(plane << 16 | last for plane in range(17) for last in range(0xfffd, 0x10000))]
        with open(path('names.json'), 'w', encoding='utf-8') as file:
            json.dump({'n' + chr(point): [[1, 2, point]] for point in points}, file)
        lnorm('report', 'names.json', '--all', '-o', 'names.html')
        with open(path('names.html'), encoding='utf-8', newline='') as file:
            text = file.read()
        self.assertEqual([c for c in set(text) if ord(c) & 0xfffe == 0xfffe or unicodedata.category(c) == 'Cc' and c != '\n'], [])
        for data in re.findall('<script type="application/json">(.*?)</script>', text, re.DOTALL):
            json.loads(data, parse_constant=self.fail)
        titles = re.findall('<h2>(.*?)</h2>', text)
        self.assertEqual(len(set(titles)), len(points))
        for c in 'é\xa0\u2028\ufffd\U0001fffd':
            self.assertIn('n' + c, titles)

    def test_policy(self):
        lnorm('report', 'x.npy', '-o', 'tensor.html')
        with open(path('tensor.html'), encoding='utf-8') as file:
            text = file.read()
        with open(path('tampered.html'), 'w', encoding='utf-8') as file:
            file.write(text.replace('</body>', '<script>document.title = "tampered"</script></body>'))
        self.browser.driver.get('file://' + path('tampered.html'))
        self.assertEqual(self.browser.driver.title, 'x.npy')  # another script does not run
        self.assertEqual(len(self.browser.errors()), 1)

    # ---- Several.

    def test_set(self):
        lnorm('report', 'set.json', '-o', 'set.html')
        self.check_page('set.html')
        self.browser.open('set.html')
        stats = json.loads(lnorm('stats', 'set.json', '--json'))
        lines = self.js(CELLS, 'All tensors')
        self.assertEqual([line[0] for line in lines], [tensor['name'] for tensor in stats['tensors']])
        for line, tensor in zip(lines, stats['tensors']):
            self.assertEqual([float(v) for v in line[5:8]], [
                tensor['mean']['median'], tensor['variance']['median'], abs(tensor['largest']['value'])])
        means = self.table('-mean')
        self.assertEqual([float(row['before, median']) for row in means],
                         [tensor['mean']['median'] for tensor in stats['tensors']])
        self.assertEqual(len(self.marks('-mean', 'before')), 8)
        for layer, line, name in zip(self.table('-features'), lines, (tensor['name'] for tensor in stats['tensors'])):
            found = json.loads(lnorm('stats', 'set.json:' + name, '--features', '--json'))['summary']
            self.assertEqual([float(layer['before, ' + k]) for k in ('min', 'median', 'max')],
                             [found['absmax'][k] for k in ('min', 'median', 'max')])
            self.assertEqual([float(v) for v in line[9:]], [found['dead'], found['absmax_ratio']])
        # Links lead to sections.
        links = self.js('return [...document.querySelectorAll("td a, th a")].map(a => a.getAttribute("href"))')
        self.assertEqual(len(links), 8)
        self.assertTrue(all(self.js('return !!document.querySelector(arguments[0])', link) for link in links))
        self.check_sorting(5)

    def check_sorting(self, column):
        """By a click, and by a key once more: down, then up."""
        button = self.browser.driver.find_elements(By.CSS_SELECTOR, 'th > button')[column]
        values = lambda: self.js('''return [...arguments[0].closest('table').tBodies[0].rows].map(
          row => Number(row.cells[arguments[1]].dataset.value))''', button, column)
        before = values()
        button.click()
        self.assertEqual(values(), sorted(before))
        button.send_keys(Keys.ENTER)
        self.assertEqual(values(), sorted(before, reverse=True))
        self.assertEqual(self.js('return arguments[0].parentElement.ariaSort', button), 'descending')

    def test_many(self):
        """The 50 that stand out most have a section."""
        with open(path('many.json'), 'w', encoding='utf-8') as file:
            json.dump({'t.%d' % i: [[1, 2, i]] for i in range(60)}, file)
        lnorm('report', 'many.json', '-o', 'many.html')
        self.browser.driver.get('file://' + path('many.html'))
        titles = self.js('return [...document.querySelectorAll("h2")].map(h => h.textContent)')
        self.assertEqual(titles, ['t.%d' % i for i in range(10, 60)])
        page = lnorm('report', 'many.json', '--all')
        self.assertEqual(page.count('<h2>'), 60)

    # ---- Comparisons.

    def test_comparison(self):
        lnorm('compare', 'y.npy', 'x.npy', '--page', 'comparison.html', status=1)
        self.check_page('comparison.html')
        self.browser.open('comparison.html')
        found = json.loads(lnorm('compare', 'y.npy', 'x.npy', '--json', status=1))
        rows = {row[0]: row[1] for row in self.js(CELLS, 'What the errors')}
        for name, expected in (
                ('greatest absolute difference', found['greatest_absolute_difference']['value']),
                ('greatest relative difference', found['greatest_relative_difference']['value']),
                ('greatest distance in ulp', found['greatest_ulp_distance']['value']),
                ('mean error', found['errors']['mean']),
                ('mean absolute error', found['errors']['mean_absolute']),
                ('mean error toward zero', found['errors']['mean_toward_zero']),
                ('mean error away from zero', found['errors']['mean_away_from_zero']),
                ('root mean square error', found['errors']['root_mean_square']),
                ('cosine similarity', found['errors']['cosine']),
                ('SQNR in dB', found['errors']['sqnr_db']),
                ('equal numbers', found['errors']['equal_numbers']),
                ('NaN or infinity on one side only', found['non_finite_one_side'])):
            self.assertEqual(float(rows[name]), expected, name)
        counts = [int(row['elements']) for row in self.table('-ulp')]
        within = [entry['elements'] for entry in found['ulp']['distribution']]
        self.assertEqual([sum(counts[:i + 1]) for i in range(len(counts))], within[:1] + within[2:])
        self.assertEqual(len(self.marks('-ulp', 'bars')), len(counts))
        errors = self.table('-errors')
        self.assertEqual(sum(int(row['not finite']) for row in errors), 1)
        self.assertEqual(max(float(row['greatest']) for row in errors),
                         found['greatest_absolute_difference']['value'])
        worst = max(errors, key=lambda row: float(row['mean']))
        self.assertEqual(worst['row'], '10')
        self.assertEqual(len(self.marks('-error-map', 'cells')), 30 * 40)
        # The circle about the worst element is where its cell is.
        width, height = self.js(SIZE, '-error-map')
        row, element = found['worst']['elements'][0]['index']
        left, top, right, bottom = self.marks('-error-map', 'circles')[0]
        self.assertAlmostEqual((left + right) / 2, (element + 0.5) / 40 * width, delta=2)
        self.assertAlmostEqual((top + bottom) / 2, (row + 0.5) / 30 * height, delta=2)
        self.assertNotIn('Color:', self.js('return document.querySelector("main").innerText'))  # nothing to choose
        gray = [row for row in self.table('-error-map') if row['greatest |actual - expected|'] == 'not finite']
        self.assertEqual([(row['row'], row['element']) for row in gray], [('0', '5')])

    def test_comparison_with_holes(self):
        lnorm('compare', 'holes.npy', 'ones.npy', '--page', 'holes.html', status=1)
        self.browser.open('holes.html')
        table = self.table('-error-map')
        self.assertEqual({row['not finite'] for row in table[5 * 128:6 * 128]}, {'2'})
        self.assertEqual(table[50 * 128 + 3]['not finite'], '1')
        self.assertEqual(self.js(PIXEL, '-error-map', 50 * 128 + 3), [138, 138, 138, 255])
        self.assertEqual(self.hover('-error-map', 50 * 128 + 3)[-2:],
                         ['greatest |actual - expected|: ' + table[50 * 128 + 3]['greatest |actual - expected|'],
                          'not finite: 1'])

    def test_set_comparison(self):
        lnorm('compare', 'set2.json', 'set.json', '--page', 'sets.html', status=1)
        self.check_page('sets.html')
        self.browser.open('sets.html')
        found = json.loads(lnorm('compare', 'set2.json', 'set.json', '--json', status=1))
        lines = self.js(CELLS, 'All pairs')
        self.assertEqual([line[0] for line in lines], [tensor['name'] for tensor in found['tensors']])
        for line, tensor in zip(lines, found['tensors']):
            self.assertEqual(line[1], 'agree' if tensor['equal'] else 'differ')
            self.assertEqual([float(v) for v in line[3:8]], [
                tensor['mismatched'], tensor['greatest_absolute_difference']['value'],
                tensor['greatest_relative_difference']['value'], tensor['greatest_ulp_distance']['value'],
                tensor['errors']['root_mean_square']])
        self.assertEqual(self.js('return [...document.querySelectorAll("h2")].map(h => h.textContent)'),
                         ['h.3', 'h.6'])
        self.check_sorting(4)


def take_picture(name):
    os.makedirs(FOLDER, exist_ok=True)
    subprocess.run([LNORM, 'report', 'activations.npy', '-o', path('picture.html')], check=True,
                   cwd=os.path.join(DATA, 'page'))
    browser = Browser()
    browser.open('picture.html', 1100)
    end = browser.js('return [...document.querySelectorAll("h3")].at(-2).getBoundingClientRect().top')
    browser.picture('picture.png', math.floor(end), 0.8)
    browser.driver.quit()
    Image.open(path('picture.png')).convert('RGB').quantize(200, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(name, optimize=True)
    assert os.path.getsize(name) < 200_000


if __name__ == '__main__':
    if '--picture' in sys.argv:
        take_picture(os.path.abspath(sys.argv[4]))
    elif len(sys.argv) > 3:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
    else:  # two browsers at once: each draws on one processor
        names = ['PageTest.' + name for name in unittest.defaultTestLoader.getTestCaseNames(PageTest)]
        halves = [subprocess.Popen([sys.executable, __file__, LNORM, path(str(half)), *names[half::2]]) for half in (0, 1)]
        sys.exit(max([half.wait() for half in halves]))
