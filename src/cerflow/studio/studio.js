"use strict";
// What the browser does for the studio, by name: `panels` call it as studio.name(…).
window.studio = {
  // Tables that can be scrolled are reached by the keyboard, and have captions; where what has the focus goes, the open
  // tab gets it.
  reach() {
    let last = null;
    addEventListener('focusin', event => { last = event.target; });
    new MutationObserver(() => {
      for (const place of document.querySelectorAll('.q-table__middle.scroll:not([tabindex])')) place.tabIndex = 0;
      for (const table of document.querySelectorAll('.q-table__container[aria-label] table:not(:has(caption))'))
        table.createCaption().textContent = table.closest('[aria-label]').ariaLabel;
      if (document.activeElement === document.body && last && (!last.isConnected || !last.offsetParent || last.disabled))
        document.querySelector('.q-tab--active')?.focus({preventScroll: true});
    }).observe(document.body, {childList: true, subtree: true, attributeFilter: ['disabled', 'class', 'style']});
  },

  // Sends a file to the server, which says where it has put it.
  async send(event, emit) {
    const [file] = event.target.files;
    if (!file) return;
    const answer = await fetch('/upload?name=' + encodeURIComponent(file.name), {method: 'POST', body: file});
    event.target.value = '';
    emit(await answer.json());
  },

  // Hooks the words of the page into an editor's own completion, as soon as it is there.
  async complete(editor, name) {
    const CM = await import('nicegui-codemirror');
    while (!getElement(editor)) await new Promise(requestAnimationFrame);
    await getElement(editor).editorPromise;
    const source = context => {
      const word = context.matchBefore(/[\w"]*$/);
      const known = window.cerflowWords || {};
      const path = context.matchBefore(/(?:(?:\w+|"[^"]*")\.)*[\w"]*$/).text.replace(/[\w"]*$/, '');
      if (!path && !context.explicit && (!word || word.from === word.to)) return null;
      const any = path.indexOf('.') === path.length - 1 ? known['.'] : [];
      const options = ((path ? known[path] || any : known['']) || []).filter(one => !word || one.label !== word.text);
      return {from: word ? word.from : context.pos, options};
    };
    getElement(editor).editor.dispatch({effects: CM.StateEffect.appendConfig.of(
      [CM.EditorState.languageData.of(() => [{autocomplete: source}]),
       CM.EditorView.contentAttributes.of({'aria-label': name, tabindex: '0'})])});
  },

  // Brings what a step has changed to the middle of the picture, without moving the page around it.
  centre(picture) {
    const place = getHtmlElement(picture);
    const kinds = ['.cs-taken', '.cs-fired.cf-accepts', '.cs-fired.cf-marks', '.cs-refused'];
    const part = kinds.map(kind => place.querySelector(kind)).find(found => found);
    if (part) {
      const [inner, outer] = [part.getBoundingClientRect(), place.getBoundingClientRect()];
      const beyond = (start, size) => inner[start] + inner[size] / 2 - outer[start] - outer[size] / 2;
      place.scrollBy(beyond('x', 'width'), beyond('y', 'height'));
    }
  },

  // Saves the picture of the query as it is on the page; the browser draws it for PNG, twice as large.
  savePicture(form) {
    const svg = document.querySelector('.cs-picture > .cf-picture');
    if (!svg) return;
    const save = blob => {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      link.download = 'query.' + form.toLowerCase();
      link.click();
    };
    const alone = svg.cloneNode(true);
    alone.classList.add(document.body.classList.contains('body--dark') ? 'cf-dark' : 'cf-light');
    const text = new XMLSerializer().serializeToString(alone);
    if (form === 'SVG') {
      save(new Blob([text], {type: 'image/svg+xml'}));
      return;
    }
    const image = new Image(), canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [2 * svg.width.baseVal.value, 2 * svg.height.baseVal.value];
    image.onload = () => {
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(save);
    };
    image.src = 'data:image/svg+xml,' + encodeURIComponent(text);
  },

  // The timeline tells which match is chosen in it, and is told which one is chosen in the table.
  listen(timeline) {
    const frame = getHtmlElement(timeline);
    frame.onload = () => frame.contentWindow.addEventListener(
      'chosen', e => frame.dispatchEvent(new CustomEvent('chosen', {detail: e.detail})));
  },
  choose(timeline, match) { getHtmlElement(timeline).contentWindow?.cerflow?.choose(match); },

  // The rows of a table, which are read by pages, in the order of a column or as they come.
  rows: (grid, version, rows) => ({getRows: page => {
    const [sort] = page.sortModel;
    const order = sort ? `&by=${encodeURIComponent(sort.colId)}&down=${sort.sort === 'desc'}` : '';
    fetch(`/rows?grid=${grid}&version=${version}&first=${page.startRow}&end=${page.endRow}${order}`)
      .then(answer => answer.json()).then(found => page.successCallback(found, rows)).catch(() => page.failCallback());
  }}),

  // Marks a row by its number; if the browser has not read it yet, in the order of the file, once it has.
  mark(grid, number) {
    const api = getElement(grid).api, rows = [];
    const mark = () => {
      api.forEachNode(node => { if (node.data && node.data['#'] === number) rows.push(node); });
      if (!rows.length) return false;
      api.ensureIndexVisible(rows[0].rowIndex);
      rows[0].setSelected(true);
      return true;
    };
    if (!mark() && !api.getColumnState().some(column => column.sort)) {
      const later = () => { if (mark()) api.removeEventListener('modelUpdated', later); };
      api.addEventListener('modelUpdated', later);
      api.ensureIndexVisible(number - 1);
    }
  },

  // A row was chosen by a click, Enter or the space bar; it can be chosen again, unless it stays marked.
  rowSelected(event, table, stays) {
    if (!event.node.isSelected() || !event.data) return;
    getElement(table).$emit('chosen', event.data['#']);
    if (!stays) event.node.setSelected(false);
  },
};
