// gateway.yaml and what it includes, as one tree. Top-level maps are joined by key; nothing is overwritten, no list is joined.
import { basename, dirname, resolve } from "node:path";
import { type Document, isScalar } from "yaml";
import type { Disk } from "./disk.ts";
import { problem } from "./problems.ts";
import { type SourceFinding, parseSource } from "./source.ts";
import type { Spot } from "./spot.ts";
import { below, isMapping, locate, type Mapping, plant, type Tree, within } from "./tree.ts";

export interface ReadConfig {
  readonly tree: Tree;
  /** Absolute, in the order read: what "file order" means. */
  readonly files: string[];
  readonly findings: SourceFinding[];
  /** all: what is not there is missing. main: it may stand in what could not be read. none: nothing to go on with. */
  readonly read: "all" | "main" | "none";
}

/** `text`: in place of the file's own, which then need not exist. */
export async function readConfig(file: string, disk: Disk, text?: string): Promise<ReadConfig> {
  const main = await readTree(file, disk, text);
  if (main.missing?.words.id === "config/file-missing") {
    const words = problem.configMissing(file);
    return { ...main, files: [file], findings: [{ words, file, pointer: "" }], read: "none" };
  }
  const { tree, findings } = main;
  const files = [file];
  if (!main.whole) return { tree, files: [file], findings, read: "none" };
  let whole = true;
  for (const wanted of includesOf(tree, (f) => findings.push({ ...f, file }))) {
    for (const included of await expand(wanted.path, file, disk, (words) =>
      findings.push({ words, file, pointer: wanted.pointer, spot: wanted.spot }),
    )) {
      if (files.includes(included)) continue;
      files.push(included);
      const part = await readTree(included, disk, undefined, true);
      // Where it was asked for: there is no line in a file that is not there.
      if (part.missing)
        findings.push({ ...part.missing, file, pointer: wanted.pointer, spot: wanted.spot });
      else findings.push(...part.findings, ...merge(tree, part.tree, included));
      whole &&= part.whole;
    }
  }
  return { tree, files, findings, read: whole ? "all" : "main" };
}

async function readTree(file: string, disk: Disk, given?: string, included = false) {
  const empty: Tree = { value: {}, places: new Map() };
  const read = given === undefined ? await disk.text(file) : { text: given };
  if ("words" in read) {
    const missing: SourceFinding = { words: read.words, file, pointer: "" };
    return { tree: empty, findings: [missing], whole: false, missing };
  }
  const { source, document, findings } = parseSource(file, read.text);
  // Of a file that is included, comments alone are a way to say nothing.
  const blank = included ? read.text.trim() === "" : document && saysNothing(document);
  if (blank) {
    const words = problem.emptyFile(file);
    return { tree: empty, findings: [{ words, file, pointer: "" }], whole: false };
  }
  if (!document) return { tree: empty, findings, whole: false };
  const planted = plant(document, source);
  const all = [...planted.findings];
  const { tree } = planted;
  if (!isMapping(tree.value)) {
    const spot = locate(tree, "");
    all.push({ words: problem.notAMapping(), file, pointer: "", ...(spot ? { spot } : {}) });
    tree.value = {};
  }
  // A key with everything under it commented out says nothing.
  const root = tree.value as Mapping;
  for (const key of Object.keys(root)) if (root[key] === null) delete root[key];
  return { tree, findings: all, whole: true };
}

const saysNothing = ({ contents }: Document): boolean =>
  contents === null || (isScalar(contents) && contents.value === null);

type Wanted = { path: string; pointer: string; spot: Spot };

function includesOf(tree: Tree, find: (f: Omit<SourceFinding, "file">) => void): Wanted[] {
  const said = (tree.value as Mapping)["include"];
  if (said === undefined) return [];
  const list = Array.isArray(said) ? said : [said];
  return list.flatMap((path: unknown, i) => {
    const pointer = Array.isArray(said) ? below("/include", i) : "/include";
    const spot = locate(tree, pointer)!;
    // The skeleton says so.
    if (typeof path !== "string" || path === "") return [];
    if (!path.includes("${")) return [{ path, pointer, spot }];
    find({ words: problem.includePath(), pointer, spot });
    return [];
  });
}

/** A star stands in the last part of a path and matches as in a shell: no dot files, sorted. */
async function expand(
  path: string,
  from: string,
  disk: Disk,
  say: (words: SourceFinding["words"]) => void,
): Promise<string[]> {
  const full = resolve(dirname(from), path);
  if (!path.includes("*")) return [full];
  const folder = dirname(full);
  if (folder.includes("*")) {
    say(problem.includeStar(path));
    return [];
  }
  const parts = basename(full)
    .split("*")
    .map((part) => part.replace(/[^\w]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join(".*")}$`);
  try {
    const files = await disk.list(folder);
    return files
      .filter((each) => pattern.test(basename(each)) && !basename(each).startsWith("."))
      .sort();
  } catch {
    say(problem.includeFolder(folder));
    return [];
  }
}

function merge(into: Tree, from: Tree, file: string): SourceFinding[] {
  const findings: SourceFinding[] = [];
  const target = into.value as Mapping;
  const twice = (pointer: string) => {
    const [first, second] = [into, from].map((tree) => {
      const place = tree.places.get(pointer)!;
      return place.key ?? place.value;
    });
    const words = problem.definedTwice(pointer.split("/").at(-1)!, first!);
    findings.push({ words, file, pointer, spot: second! });
  };
  const take = (pointer: string) => {
    for (const [at, place] of from.places) if (within(at, pointer)) into.places.set(at, place);
  };
  for (const [key, value] of Object.entries(from.value as Mapping)) {
    const pointer = below("", key);
    const present = target[key];
    if (key === "include") {
      const spot = from.places.get(pointer)!.key!;
      findings.push({ words: problem.includeNested(), file, pointer, spot });
    } else if (!Object.hasOwn(target, key)) {
      target[key] = value;
      take(pointer);
    } else if (isMapping(present) && isMapping(value)) {
      for (const [name, each] of Object.entries(value)) {
        const down = below(pointer, name);
        if (Object.hasOwn(present, name)) twice(down);
        else {
          present[name] = each;
          take(down);
        }
      }
    } else twice(pointer);
  }
  return findings;
}
