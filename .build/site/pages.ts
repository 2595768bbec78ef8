// Renders Markdown pages as HTML with anchors, a common frame, and working links between pages.
import { Marked, type Tokens } from "marked";

export interface SitePage {
  /** Path within the site: "operators.html". */
  readonly url: string;
  readonly title: string;
  /** Group in the menu. */
  readonly group: string;
  readonly html: string;
  readonly sections: readonly Section[];
}

export interface Section {
  readonly id: string;
  readonly title: string;
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
  of: { readonly url: string; readonly group: string; readonly text: string },
  link: (href: string) => string | undefined,
): SitePage {
  const sections: Section[] = [];
  const seen = new Map<string, number>();
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const title = text.replaceAll(/[`*]/g, "");
        const times = seen.get(anchor(title)) ?? 0;
        seen.set(anchor(title), times + 1);
        const id = times === 0 ? anchor(title) : `${anchor(title)}-${times}`;
        sections.push({ id, title, text: "" });
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
  return { url: of.url, group: of.group, title, html, sections: searchable(of.text, sections) };
}

/** Returns the text below each heading, for the search. */
function searchable(text: string, sections: readonly Section[]): readonly Section[] {
  const parts = text
    .replaceAll(/^```[\s\S]*?^```/gm, (code) => code.replaceAll(/^#/gm, " #"))
    .split(/^#{1,6} .*$/m);
  return sections.map((section, i) => ({
    ...section,
    text: (parts[i + 1] ?? "")
      .replaceAll(/[`*|]|\]\([^)]*\)|\[/g, " ")
      .replaceAll(/\s+/g, " ")
      .trim(),
  }));
}

/** Returns the complete HTML file. */
export function framed(page: SitePage, all: readonly SitePage[]): string {
  const base = "../".repeat(page.url.split("/").length - 1);
  const groups = [...Map.groupBy(all, ({ group }) => group)].map(
    ([group, pages]) =>
      `<p>${escaped(group)}</p><ul>${pages
        .map(
          ({ url, title }) =>
            `<li><a href="${base}${url}"${url === page.url ? ' aria-current="page"' : ""}>${escaped(title)}</a></li>`,
        )
        .join("")}</ul>`,
  );
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
<a class="skip" href="#main">To the text</a>
<header><a href="${base}index.html">Tollgate</a><form role="search"><label for="search">Search</label> <input id="search" type="search" autocomplete="off" aria-controls="found"><ul id="found"></ul><span id="count" role="status"></span></form></header>
<div class="frame"><nav aria-label="Pages">${groups.join("")}</nav><main id="main">
${page.html}</main></div>
</body>
</html>
`;
}
