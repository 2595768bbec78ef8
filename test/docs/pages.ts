// The pages of this repository, and their code blocks.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");
export const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...globSync("{plugins,src}/**/README.md", { cwd: ROOT }),
  ...globSync("docs/**/*.md", { cwd: ROOT }),
];

export interface Block {
  page: string;
  line: number;
  language: string;
  text: string;
}

const blocks: Block[] = PAGES.filter((page) => existsSync(join(ROOT, page))).flatMap((page) => {
  const text = readFileSync(join(ROOT, page), "utf8");
  // A block in a list is indented.
  return [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^\1```$/gm)].map((m) => ({
    page,
    line: text.slice(0, m.index).split("\n").length,
    language: m[2]!,
    text: m[3]!.replaceAll(new RegExp(`^${m[1]}`, "gm"), ""),
  }));
});
/** Blocks in one language. */
export const of = (language: string) => blocks.filter((b) => b.language === language);
export const named = (b: Block) => `${b.page}:${b.line}`;
