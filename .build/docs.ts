// `npm run docs`: builds docs/ as a static site in site/. The search needs no server. The contract
// reference is generated from its types, and the reference of gateway.yaml from the schema. No page
// loads anything from another host.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { contract } from "./site/contract.ts";
import { framed, rendered, type SitePage } from "./site/pages.ts";
import { plugins, resolved, type Setting, settings, type SettingsSchema } from "./site/settings.ts";

const ROOT = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** Pages for contributors, which the package and so the index of docs do not have. */
const CONTRIBUTORS = [
  "CONTRIBUTING.md",
  "SECURITY.md",
  "src/README.md",
  "src/protocols/README.md",
  ...globSync("src/protocols/*/README.md", { cwd: ROOT }).toSorted(),
  "plugins/stores/README.md",
  "CHANGELOG.md",
];

/** Returns the files that the index of docs lists, with the headings that they are listed below. */
export function indexed(): (readonly [file: string, group: string])[] {
  let group = "";
  return read("docs/README.md")
    .split("\n")
    .flatMap((line) => {
      group = /^## (.+)/.exec(line)?.[1] ?? group;
      const file = /^\| \[[^\]]+\]\(([^)]+)\)/.exec(line)?.[1];
      return file === undefined ? [] : [[join("docs", file), group] as const];
    });
}

/** Source files, with their paths in the site and groups in the menu. */
const PAGES: readonly (readonly [file: string, url: string, group: string])[] = [
  ["README.md", "index.html", "Start"],
  ["docs/README.md", "contents.html", "Start"],
  ...indexed().map(([file, group]) => [file, urlOf(file), group] as const),
  ...CONTRIBUTORS.map((file) => [file, urlOf(file), "Contributing"] as const),
];
function urlOf(file: string): string {
  return file
    .replace(/^docs\//, "")
    .replace(/^(.*runbook)\/README\.md$/, "$1/index.html")
    .replace(/(\/README)?\.md$/, ".html");
}
/** Pages that are generated. */
const MADE = [
  ["settings.html", "Reference", settingsPage],
  ["contract.html", "Reference", contractPage],
] as const;

/** Returns all pages and other files of the site, by path. */
export function site(): ReadonlyMap<string, string | URL> {
  const urls = new Map(PAGES.map(([file, url]) => [file, url]));
  const files = new Map<string, string | URL>();
  const linkFrom = (file: string, url: string) => (href: string) => {
    const [path = "", hash] = href.split("#");
    if (path === "") return `#${hash}`;
    const to = join(dirname(file), path);
    const here = dirname(url);
    const known = urls.get(to);
    if (known) return `${relative(here, known)}${hash === undefined ? "" : `#${hash}`}`;
    if (!/\.(png|svg)$/.test(to)) return undefined;
    files.set(`pictures/${to.replaceAll("/", "-")}`, new URL(`../${to}`, import.meta.url));
    return relative(here, `pictures/${to.replaceAll("/", "-")}`);
  };
  const pages: SitePage[] = [
    ...PAGES.map(([file, url, group]) =>
      rendered({ url, group, text: read(file) }, linkFrom(file, url)),
    ),
    ...MADE.map(([url, group, text]) => rendered({ url, group, text: text() }, (href) => href)),
  ];
  for (const page of pages) files.set(page.url, framed(page, pages));
  const entries = pages.flatMap(({ url, title: page, sections }) =>
    sections.map(({ id, title, text }) => ({
      url: `${url}#${id}`,
      page,
      title,
      text: text.slice(0, 2_000),
    })),
  );
  files.set("index.js", `globalThis.tollgatePages = ${JSON.stringify(entries)};\n`);
  for (const name of ["look.css", "search.js"])
    files.set(name, new URL(`site/${name}`, import.meta.url));
  return files;
}

const cell = (text: string) =>
  text.replaceAll("|", "\\|").replaceAll("\n", " ").replaceAll("<", "&lt;");
const code = (text: string) => `\`${text}\``;

function settingsPage(): string {
  const schema = JSON.parse(read("schemas/gateway.schema.json")) as SettingsSchema;
  const table = (rows: readonly Setting[]) =>
    rows.length === 0
      ? "No options.\n"
      : `| key | takes | |\n|---|---|---|\n${rows.map(({ path, takes, words }) => `| ${code(path)} | ${cell(takes)} | ${cell(words)} |`).join("\n")}\n`;
  const { definitions, properties } = schema;
  // All providers have the same keys, so their names are left out.
  const { properties: _, ...providers } = properties["providers"]!;
  const own = resolved({ properties: { ...properties, providers } }, definitions);
  const kinds = Map.groupBy(plugins(schema), ({ kind }) => kind);
  return [
    "# Keys of gateway.yaml",
    "Out of the schema that editors read. Any text may be `${env:NAME}`, `${file:path}` or `${credential:name}` too. `[]` is each of a list.",
    "## The gateway's own",
    table(
      settings(own).filter(({ path }) => !/^(frontends|middleware|observers|store)[.[]/.test(path)),
    ),
    ...[...kinds].flatMap(([kind, all]) => [
      `## Options of each ${kind}`,
      ...all.flatMap(({ name, words, settings: own }) => [
        `### ${kind} ${name}`,
        words,
        table(own),
      ]),
    ]),
  ].join("\n\n");
}

function contractPage(): string {
  const chapters = contract(join(ROOT, "src/plugin/index.ts"));
  return [
    "# The contract",
    "Everything that `tollgate/plugin` exports, with its comment and its declaration, out of its sources.",
    ...chapters.flatMap(({ title, words, declared }) => [
      `## ${title[0]!.toUpperCase()}${title.slice(1)}`,
      words,
      ...declared.flatMap(({ name, words: about, code: text }) => [
        `### ${name}`,
        about,
        `\`\`\`ts\n${text}\n\`\`\``,
      ]),
    ]),
  ].join("\n\n");
}

if (import.meta.main) {
  const out = join(ROOT, "site");
  rmSync(out, { recursive: true, force: true });
  const files = site();
  for (const [path, body] of files) {
    const to = join(out, path);
    mkdirSync(dirname(to), { recursive: true });
    if (typeof body === "string") writeFileSync(to, body);
    else cpSync(body, to);
  }
  console.log(`site: ${files.size} files; open site/index.html`);
}
