// Renders Markdown pages as HTML with anchors, a common frame, and working links between pages.
import { Marked, type Tokens } from "marked";

export interface SitePage {
  /** Path within the site: "guides/deploy.html". */
  readonly url: string;
  readonly title: string;
  /** Section of the menu. */
  readonly section: string;
  /** Folder of the section, or "" for a page of the section itself. */
  readonly folder: string;
  readonly html: string;
  readonly parts: readonly PagePart[];
}

/** A heading with the text below it. */
export interface PagePart {
  readonly id: string;
  readonly title: string;
  readonly depth: number;
  readonly text: string;
}

export const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/**
 * Returns the anchor of a heading, built as by common Markdown viewers, so that links in the files
 * work.
 */
export const anchor = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

/**
 * Renders a page.
 * @param link Converts a link in a file to one in the site. Returns undefined if no such page
 *   exists.
 */
export function rendered(
  of: Pick<SitePage, "url" | "section" | "folder"> & { readonly text: string },
  link: (href: string) => string | undefined,
): SitePage {
  const parts: PagePart[] = [];
  const seen = new Map<string, number>();
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const title = text.replaceAll(/[`*]/g, "");
        const times = seen.get(anchor(title)) ?? 0;
        seen.set(anchor(title), times + 1);
        const id = times === 0 ? anchor(title) : `${anchor(title)}-${times}`;
        parts.push({ id, title, depth, text: "" });
        return `<h${depth} id="${escaped(id)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const words = this.parser.parseInline(tokens);
        const to = /^(https?:|mailto:)/.test(href) ? href : link(href);
        return to === undefined ? words : `<a href="${escaped(to)}">${words}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        const to = link(href);
        return to === undefined
          ? escaped(text)
          : `<img src="${escaped(to)}" alt="${escaped(text)}" loading="lazy">`;
      },
      code({ text, lang }: Tokens.Code) {
        return `<pre tabindex="0"><code${lang ? ` class="${escaped(lang)}"` : ""}>${escaped(text)}</code></pre>\n`;
      },
      table(token: Tokens.Table) {
        const cells = (row: readonly Tokens.TableCell[], tag: string) =>
          `<tr>${row
            .map((cell) => {
              // A cell without text is not a header.
              const at = cell.text.trim() === "" ? "td" : tag;
              return `<${at}>${this.parser.parseInline(cell.tokens)}</${at}>`;
            })
            .join("")}</tr>\n`;
        const rows = token.rows.map((row) => cells(row, "td")).join("");
        return `<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead>${cells(token.header, "th")}</thead><tbody>${rows}</tbody></table></div>\n`;
      },
      // Pages contain only text, so HTML in them is escaped. Comments mark generated parts.
      html: ({ text }: Tokens.HTML | Tokens.Tag) => (text.startsWith("<!--") ? "" : escaped(text)),
    },
  });
  const html = marked.parse(of.text) as string;
  const title = /^# (.+)$/m.exec(of.text)?.[1]?.replaceAll("`", "") ?? of.url;
  const { url, section, folder } = of;
  return { url, section, folder, title, html, parts: withText(of.text, parts) };
}

/** Adds the text below each heading, for the search. */
function withText(text: string, parts: readonly PagePart[]): readonly PagePart[] {
  const texts = text
    .replaceAll(/^```[\s\S]*?^```/gm, (code) => code.replaceAll(/^#/gm, " #"))
    .split(/^#{1,6} .*$/m);
  return parts.map((part, i) => ({
    ...part,
    text: (texts[i + 1] ?? "")
      .replaceAll(/<!--[\s\S]*?-->|[`*|]|-{3,}|\]\([^)]*\)|\[/g, " ")
      .replaceAll(/\s+/g, " ")
      .trim(),
  }));
}

const listOf = (items: readonly string[]): string =>
  `<ul>${items.map((item) => `<li>${item}</li>`).join("")}</ul>`;

/** Returns the menu: one part per section, with a separate part for each folder of a section. */
function menu(page: SitePage, all: readonly SitePage[], base: string): string {
  const link = ({ url, title }: SitePage) =>
    `<a href="${base}${url}"${url === page.url ? ' aria-current="page"' : ""}>${escaped(title)}</a>`;
  const group = (name: string, isOpen: boolean, content: string) =>
    `<details${isOpen ? " open" : ""}><summary>${escaped(name)}</summary>${content}</details>`;
  return [...Map.groupBy(all, ({ section }) => section)]
    .map(([section, pages]) => {
      const items = [...Map.groupBy(pages, ({ folder }) => folder)].flatMap(([folder, own]) => {
        if (folder === "") return own.map(link);
        const isOpen = page.section === section && page.folder === folder;
        return [group(folderTitle(folder, own), isOpen, listOf(own.map(link)))];
      });
      return group(section, section === page.section || section === "Start", listOf(items));
    })
    .join("");
}

/**
 * Title of a folder: the title of its first page if that page introduces it, and otherwise its
 * name.
 */
const folderTitle = (folder: string, [first]: readonly SitePage[]): string =>
  first?.url.endsWith("/index.html") || first?.url.endsWith(`/${folder}.html`)
    ? first.title.replace(/ reference$/, "")
    : `${folder[0]!.toUpperCase()}${folder.slice(1).replaceAll("-", " ")}`;

/** Returns links to the previous and the next page of the section. */
function neighbors(page: SitePage, all: readonly SitePage[], base: string): string {
  const own = all.filter(({ section }) => section === page.section);
  const at = own.indexOf(page);
  const link = (to: SitePage | undefined, rel: "prev" | "next", word: string) =>
    to === undefined
      ? ""
      : `<a rel="${rel}" href="${base}${to.url}"><small>${word}</small>${escaped(to.title)}</a>`;
  const links = link(own[at - 1], "prev", "Previous") + link(own[at + 1], "next", "Next");
  return links === "" ? "" : `<nav class="neighbors" aria-label="Neighboring pages">${links}</nav>`;
}

/** Returns the headings of a page, unless it has only a few. */
function outline({ parts }: SitePage): string {
  const own = parts.filter(({ depth }) => depth === 2);
  if (own.length < 3) return "";
  const links = own.map(({ id, title }) => `<a href="#${escaped(id)}">${escaped(title)}</a>`);
  return `<aside aria-label="On this page"><p>On this page</p>${listOf(links)}</aside>`;
}

/** Returns the complete HTML file. */
export function framed(page: SitePage, all: readonly SitePage[]): string {
  const base = "../".repeat(page.url.split("/").length - 1);
  return `<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'">
<title>${escaped(page.title)} · Tollgate</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}look.css">
<script defer src="${base}search.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header><a href="${base}index.html">Tollgate</a><a class="to-menu" href="#menu">Menu</a><form role="search"><label for="search">Search</label> <input id="search" type="search" autocomplete="off" aria-controls="found"><ul id="found"></ul><span id="count" role="status"></span></form></header>
<div class="frame"><nav class="menu" id="menu" aria-label="Pages">${menu(page, all, base)}</nav><main id="main">
${page.html}${neighbors(page, all, base)}</main>${outline(page)}</div>
</body>
</html>
`;
}
