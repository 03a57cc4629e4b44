// Lists the chat's outputs and shows one of them. All text goes into the page as text, never as HTML.
"use strict";
(() => {
  const REFRESH = 4000, MOST_TEXT = 1 << 20, MOST_HTML = 16 << 20, MOST_ROWS = 2000;
  const segment = location.pathname.replace(/\/+$/, "").split("/").pop();
  const [heading, list, viewer, count, all] = ["heading", "list", "viewer", "count", "all"].map((id) => document.getElementById(id));
  let files = [], shown = "none", known = "", ended = false, scrolled = "";
  const readable = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  let chat = readable(segment).split("~")[0];

  const make = (name, options = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key in element && key !== "download") element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };
  const sizes = (bytes) => {
    const units = ["bytes", "KB", "MB", "GB", "TB"];
    let unit = 0;
    while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
    return `${unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${bytes === 1 && !unit ? "byte" : units[unit]}`;
  };
  const times = (text) => {
    const time = new Date(text), today = new Date().toDateString() === time.toDateString();
    return time.toLocaleString([], today ? { hour: "2-digit", minute: "2-digit" } : { dateStyle: "medium", timeStyle: "short" });
  };
  const folder = (file) => file.path.slice(0, Math.max(0, file.path.lastIndexOf("/")));
  const facts = (file) => `${sizes(file.size)} · ${times(file.modified)}`;
  // The list names files by their public address; this page may have been opened by another one.
  const address = (file) => `../files/${segment}/${file.url.split("/files/").pop().split("/").slice(1).join("/")}`
    + (file.path === "archive" ? "?file=1" : "");
  const saving = (file) => `${address(file)}${file.path === "archive" ? "&" : "?"}download=1`;
  const key = (file) => file.url.split("/files/").pop().split("/").slice(1).join("/");
  const state = (title, text, ...more) => make("div", { className: "state" }, make("h2", {}, title), make("p", {}, text), ...more);
  const opened = () => files.find((file) => key(file) === location.hash.slice(1));

  async function load(file, most) {
    const part = file.size > most;
    const response = await fetch(address(file), part ? { headers: { Range: `bytes=0-${most - 1}` } } : {});
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return { text: new TextDecoder().decode(await response.arrayBuffer()), part };
  }

  const shows = {
    image: (file) => [make("div", { className: "media" }, make("img", { src: address(file), alt: file.name }))],
    audio: (file) => [make("div", { className: "media" }, make("audio", { src: address(file), controls: true }))],
    video: (file) => [make("div", { className: "media" }, make("video", { src: address(file), controls: true }))],
    pdf: (file) => [make("iframe", { src: address(file), title: file.name })],
    html: async (file) => {
      const { text, part } = await load(file, MOST_HTML);
      const policy = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; style-src 'unsafe-inline' data:; "
        + "img-src data: blob:; font-src data:; media-src data: blob:; worker-src blob:; form-action 'none'; base-uri 'none'";
      // The oldest way out that no policy closes; a page that misses it never had a use for it here.
      const closed = "<script>for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel'])"
        + " Object.defineProperty(window, name, { value: undefined });<\/script>";
      const frame = make("iframe", { title: file.name });
      frame.setAttribute("sandbox", "allow-scripts");
      frame.setAttribute("referrerpolicy", "no-referrer");
      frame.srcdoc = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}">${closed}${text}`;
      return [...cut(part, file), frame];
    },
    markdown: async (file) => {
      const { text, part } = await load(file, MOST_TEXT);
      return [...cut(part, file), make("article", { className: "prose" }, ...markdown(text, file))];
    },
    table: async (file) => {
      const { text, part } = await load(file, MOST_TEXT);
      const rows = records(text, file.path.toLowerCase().endsWith(".tsv") ? "\t" : separator(text));
      const more = part || rows.length > MOST_ROWS;
      return [...cut(more, file, `the first ${Math.min(rows.length, MOST_ROWS).toLocaleString()} rows`), table(rows.slice(0, MOST_ROWS))];
    },
    text: async (file) => {
      const { text, part } = await load(file, MOST_TEXT);
      return [...cut(part, file), make("pre", { className: "wrapped" }, make("code", {}, text))];
    },
    code: async (file) => {
      const { text, part } = await load(file, MOST_TEXT);
      const lines = text.replace(/\n$/, "").split("\n").length;
      const numbers = Array.from({ length: lines }, (_, at) => at + 1).join("\n");
      return [...cut(part, file), make("pre", {}, make("span", { ariaHidden: "true" }, numbers), make("code", {}, text))];
    },
    other: (file) => [state("No preview", `${file.name} is a file that browsers cannot show.`,
      make("a", { className: "button", href: saving(file), download: "" }, "Download"))],
  };

  const cut = (part, file, what = "the beginning") => part
    ? [make("p", { className: "note" }, `Only ${what} of this file (${sizes(file.size)}) is shown.`)] : [];

  const separator = (text) => {
    const line = text.split("\n", 1)[0];
    return [",", ";", "\t"].reduce((best, sign) => (line.split(sign).length > line.split(best).length ? sign : best));
  };
  function records(text, sign) {
    const rows = []; let row = [], cell = "", quoted = false;
    for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length; at += 1) {
      const c = text[at];
      if (quoted) {
        if (c !== '"') cell += c;
        else if (text[at + 1] === '"') { cell += c; at += 1; } else quoted = false;
      } else if (c === '"' && cell === "") quoted = true;
      else if (c === sign) { row.push(cell); cell = ""; }
      else if (c === "\n") { row.push(cell.replace(/\r$/, "")); rows.push(row); row = []; cell = ""; if (rows.length > MOST_ROWS) return rows; }
      else cell += c;
    }
    if (cell || row.length) rows.push([...row, cell]);
    return rows;
  }
  function table([head = [], ...rows]) {
    const isNumber = (cell) => cell.length < 40 && /^\s*[-+]?[\d.,]+\s*%?\s*$/.test(cell);
    const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", isNumber(cell) ? { className: "number" } : {}, cell))));
    const names = make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)));
    return make("div", { className: "table", tabIndex: 0 }, make("table", {}, make("thead", {}, names), make("tbody", {}, ...body)));
  }

  // Markdown as people write it: what is not known, HTML above all, stays the text that it is.
  // A file may be made to hold a browser up: what is longer or deeper than people write stays text, and no pattern looks far.
  const MOST_LINE = 5000, MOST_WORDS = 20000, MOST_DEPTH = 40;
  function markdown(text, file, depth = 0) {
    if (depth > MOST_DEPTH) return [make("p", {}, text)];
    const lines = text.replace(/\r/g, "").split("\n"), blocks = [];
    const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
    const starts = (line) => /^(#{1,6}\s|```|~~~|>|\s*([-*_])(\s*\2){2,}\s*$)/.test(line) || item.test(line);
    const ruled = (at) => lines[at]?.length <= MOST_LINE ? lines[at] : "";
    let at = 0;
    while (at < lines.length) {
      const line = lines[at]; let match;
      if (!line.trim()) at += 1;
      else if (line.length > MOST_LINE) { blocks.push(make("p", {}, line)); at += 1; }
      else if ((match = line.match(/^(```+|~~~+)/))) {
        const code = [];
        for (at += 1; at < lines.length && !lines[at].startsWith(match[1]); at += 1) code.push(lines[at]);
        at += 1;
        blocks.push(make("pre", {}, make("code", {}, code.join("\n"))));
      } else if ((match = line.match(/^(#{1,6})\s+(.*?)\s*#*$/))) {
        blocks.push(make(`h${match[1].length}`, {}, ...inline(match[2], file))); at += 1;
      } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { blocks.push(make("hr")); at += 1; }
      else if (line.startsWith(">")) {
        const quote = [];
        for (; at < lines.length && lines[at].startsWith(">"); at += 1) quote.push(lines[at].replace(/^>\s?/, ""));
        blocks.push(make("blockquote", {}, ...markdown(quote.join("\n"), file, depth + 1)));
      } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(ruled(at + 1))) {
        const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim(), file));
        const head = make("tr", {}, ...cells(line).map((cell) => make("th", {}, ...cell))), rows = [];
        for (at += 2; at < lines.length && lines[at].includes("|"); at += 1) rows.push(make("tr", {}, ...cells(lines[at]).map((cell) => make("td", {}, ...cell))));
        blocks.push(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
      } else if ((match = line.match(item))) {
        const ordered = /\d/.test(match[2]), indent = match[1].length, entries = [];
        while (at < lines.length) {
          const next = lines[at].match(item);
          if (next && next[1].length <= indent) {
            if (next[1].length < indent || /\d/.test(next[2]) !== ordered) break;
            entries.push([next[3]]); at += 1;
          } else if (lines[at].trim() && /^\s/.test(lines[at])) { entries.at(-1).push(lines[at].slice(Math.min(indent + 2, lines[at].search(/\S/)))); at += 1; }
          else if (!lines[at].trim() && /^\s+\S/.test(lines[at + 1] ?? "")) { entries.at(-1).push(""); at += 1; }
          else break;
        }
        const entry = ([first, ...rest]) => {
          const box = first.match(/^\[([ xX])\]\s+(.*)$/);
          const words = box ? [make("input", { type: "checkbox", disabled: true, checked: box[1] !== " " }), " ", ...inline(box[2], file)] : inline(first, file);
          return make("li", {}, ...words, ...(rest.length ? markdown(rest.join("\n"), file, depth + 1) : []));
        };
        blocks.push(make(ordered ? "ol" : "ul", ordered ? { start: parseInt(match[2], 10) } : {}, ...entries.map(entry)));
      } else {
        const words = [line];
        for (at += 1; at < lines.length && lines[at].trim() && lines[at].length <= MOST_LINE && !starts(lines[at]); at += 1) words.push(lines[at]);
        blocks.push(make("p", {}, ...inline(words.join("\n"), file)));
      }
    }
    return blocks;
  }
  function inline(text, file) {
    if (text.length > MOST_WORDS) return [text];
    const marks = /(`{1,9})(.{1,500}?)\1(?!`)|!\[([^\]]{0,300})\]\(([^)\s]{1,2000})(?:\s[^)]{0,300})?\)|\[([^\]]{1,300})\]\(([^)\s]{1,2000})(?:\s[^)]{0,300})?\)|(\*\*|__)(?=\S)(.{1,500}?\S?)\7|([*_])(?=\S)(.{1,500}?)\9(?!\w)|~~(.{1,500}?)~~|(https?:\/\/[^\s<>)]{1,2000})|\\([!-\/:-@[-`{-~])|( {2,9}\n)/s;
    const nodes = [];
    for (let match; text && (match = marks.exec(text)); text = text.slice(match.index + match[0].length)) {
      nodes.push(text.slice(0, match.index));
      const [whole, , code, alt, image, label, link, , strong, , soft, gone, bare, escaped] = match;
      if (code) nodes.push(make("code", {}, code));
      else if (image) nodes.push(picture(alt, image, file));
      else if (label) nodes.push(anchor(inline(label, file), link, file));
      else if (strong) nodes.push(make("strong", {}, ...inline(strong, file)));
      else if (soft) nodes.push(make("em", {}, ...inline(soft, file)));
      else if (gone) nodes.push(make("del", {}, ...inline(gone, file)));
      else if (bare) nodes.push(anchor([bare], bare, file));
      else if (escaped) nodes.push(escaped);
      else nodes.push(whole.trim() ? whole : make("br"));
    }
    return [...nodes, text];
  }
  function neighbour(path, file) {
    if (/^[a-z][a-z0-9+.-]*:|^\/|^#/i.test(path)) return undefined;
    let decoded = path;
    try { decoded = decodeURIComponent(path); } catch { /* it is a name then */ }
    const parts = file.path.split("/").slice(0, -1);
    for (const part of decoded.split("/")) { if (part === "..") parts.pop(); else if (part !== ".") parts.push(part); }
    return files.find((other) => other.path === parts.join("/"));
  }
  function picture(alt, path, file) {
    const other = neighbour(path, file);
    if (other) return make("img", { src: address(other), alt });
    return /^data:image\/(png|jpeg|gif|webp);/i.test(path) ? make("img", { src: path, alt }) : anchor([alt || path], path, file);
  }
  function anchor(words, target, file) {
    const other = neighbour(target, file);
    if (other) return make("a", { href: `#${key(other)}` }, ...words);
    if (!/^(https?:|mailto:)/i.test(target)) return make("span", {}, ...words);
    return make("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, ...words);
  }

  async function show() {
    const file = opened();
    document.body.classList.toggle("open", Boolean(location.hash));
    for (const link of list.children) link.setAttribute("aria-current", String(link.hash === location.hash && Boolean(location.hash)));
    // Once for each choice: whoever scrolls the list afterwards is left in peace.
    if (file && scrolled !== location.hash) {
      scrolled = location.hash;
      [...list.children].find((link) => link.hash === scrolled)?.scrollIntoView({ block: "nearest" });
    }
    const wanted = file ? `${key(file)} ${file.modified} ${file.size}` : location.hash;
    if (wanted === shown) return;
    shown = wanted;
    if (!file) {
      document.title = `Files of ${chat}`;
      const gone = Boolean(location.hash) && files.length > 0;
      viewer.replaceChildren(...(gone ? [bar(), state("This file is gone", "It is no longer among the files of this chat.")]
        : files.length ? [state("Choose a file", "It is shown here.")]
          : [state("No files yet", "What the assistant makes for you appears here by itself.")]));
      return;
    }
    document.title = `${file.name} · ${chat}`;
    let content;
    try { content = await (shows[file.type] ?? shows.other)(file); } catch (error) {
      content = [state("This file cannot be shown", error.message)];
    }
    if (shown === wanted) viewer.replaceChildren(bar(file), make("div", { className: "content" }, ...content));
  }
  function bar(file) {
    const back = make("button", { className: "back", type: "button", ariaLabel: "Back to the list" }, "‹ Files");
    back.addEventListener("click", close);
    if (!file) return make("div", { className: "bar" }, back);
    return make("div", { className: "bar" }, back, make("h2", { title: file.path }, file.name), make("span", { className: "facts folder" }, folder(file)),
      make("span", { className: "facts" }, facts(file)),
      make("a", { className: "button", href: saving(file), download: "" }, "Download"));
  }
  function close() {
    const from = location.hash;
    history.pushState(null, "", location.pathname + location.search);
    show();
    [...list.children].find((link) => link.hash === from)?.focus();
  }

  function entry(file) {
    const extension = file.name.includes(".") ? file.name.split(".").pop().slice(0, 5) : "file";
    return make("a", { href: `#${key(file)}`, title: file.path }, make("span", { className: "badge", ariaHidden: "true" }, extension),
      make("span", { className: "name" }, file.name), make("span", { className: "facts" }, [folder(file), facts(file)].filter(Boolean).join(" · ")));
  }
  async function refresh() {
    if (document.hidden || ended) return;
    let answer;
    try {
      const response = await fetch(`../api/outputs/${segment}`);
      if (response.status === 403 || response.status === 401) {
        ended = true;
        all.hidden = true;
        count.textContent = "";
        document.body.classList.remove("open");
        const { code } = await response.json().catch(() => ({}));
        document.querySelector("main").replaceChildren(code === "chat_belongs_to_another_user"
          ? state("This chat belongs to somebody else", "Its files are shown to nobody else.")
          : state("This link has expired", "Ask in the chat for a fresh one."));
        return;
      }
      if (!response.ok) throw new Error();
      answer = await response.json();
    } catch {
      count.textContent = "The server cannot be reached; trying again.";
      return;
    }
    files = answer.files;
    chat = answer.chat_id;
    heading.textContent = `Files of ${chat}`;
    const many = answer.too_many || answer.total > files.length;
    count.textContent = !answer.total ? "" : many ? `the newest ${files.length.toLocaleString()} of ${answer.too_many ? "more than " : ""}${answer.total.toLocaleString()}`
      : answer.total === 1 ? "1 file" : `${answer.total} files`;
    all.hidden = !answer.total;
    all.href = `../files/${segment}/archive`;
    const now = JSON.stringify(files) + new Date().toDateString();
    if (now !== known) {
      known = now;
      const focused = document.activeElement?.hash;
      document.body.classList.toggle("empty", !files.length);
      list.replaceChildren(...files.map(entry));
      if (many) list.append(make("p", { className: "note" }, "Older files are not listed; download all to have them."));
      if (focused) [...list.children].find((link) => link.hash === focused)?.focus();
      if (!files.length) shown = "none";
    }
    if (files.length && !location.hash && ["none", ""].includes(shown) && matchMedia("(min-width: 721px)").matches) {
      history.replaceState(null, "", `#${key(files[0])}`);
    }
    await show();
  }

  addEventListener("hashchange", show);
  addEventListener("popstate", show);
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "Escape" && location.hash) { close(); return; }
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const inList = list.contains(document.activeElement) || document.activeElement === document.body;
    if (!step || !inList) return;
    const links = [...list.querySelectorAll("a")];
    const from = links.findIndex((link) => link === document.activeElement || (document.activeElement === document.body && link.hash === location.hash));
    const next = links[Math.max(0, Math.min(links.length - 1, from + step))];
    if (!next) return;
    event.preventDefault();
    next.focus();
    if (matchMedia("(min-width: 721px)").matches) history.replaceState(null, "", next.hash), show();
  });
  document.addEventListener("visibilitychange", refresh);
  refresh();
  setInterval(refresh, REFRESH);
})();
