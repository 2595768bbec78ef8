// Reads gateway.yaml and its includes into one tree. Top-level maps are merged by key. No value is
// overwritten, and lists are not merged.
import { basename, dirname, resolve } from "node:path";
import { type Document, isScalar } from "yaml";
import type { ConfigFiles } from "./config-files.ts";
import { problem } from "../problems.ts";
import { type ConfigFinding, parseConfigSource } from "./config-source.ts";
import type { SourceSpan } from "./source-span.ts";
import {
  childPointer,
  isMapping,
  locate,
  type Mapping,
  buildTree,
  type ConfigTree,
  isWithinPointer,
} from "./config-tree.ts";

export interface ReadConfigResult {
  readonly tree: ConfigTree;
  /** Absolute paths in the order in which the files were read ("file order"). */
  readonly files: string[];
  readonly findings: ConfigFinding[];
  /**
   * `all`: every file was read, so an unknown name is an error. `main`: an included file could not
   * be read, and it may declare the name. `none`: no usable file was read.
   */
  readonly completeness: "all" | "main" | "none";
}

/**
 * @param text Content to use in place of the file's, which need not exist.
 */
export async function readConfig(
  file: string,
  disk: ConfigFiles,
  text?: string,
): Promise<ReadConfigResult> {
  const main = await readTree(file, disk, text);
  if (main.missing?.words.id === "config/file-missing") {
    const words = problem.configMissing(file);
    return {
      ...main,
      files: [file],
      findings: [{ words, file, pointer: "" }],
      completeness: "none",
    };
  }
  const { tree, findings } = main;
  const files = [file];
  if (!main.whole) return { tree, files: [file], findings, completeness: "none" };
  let whole = true;
  for (const wanted of listIncludes(tree, (f) => findings.push({ ...f, file }))) {
    for (const included of await expandGlob(wanted.path, file, disk, (words) =>
      findings.push({ words, file, pointer: wanted.pointer, span: wanted.spot }),
    )) {
      if (files.includes(included)) continue;
      files.push(included);
      const part = await readTree(included, disk, undefined, true);
      // Reported at the include, because a missing file has no lines.
      if (part.missing)
        findings.push({ ...part.missing, file, pointer: wanted.pointer, span: wanted.spot });
      else findings.push(...part.findings, ...mergeTrees(tree, part.tree, included));
      whole &&= part.whole;
    }
  }
  return { tree, files, findings, completeness: whole ? "all" : "main" };
}

async function readTree(file: string, disk: ConfigFiles, given?: string, included = false) {
  const empty: ConfigTree = { value: {}, positions: new Map() };
  const read = given === undefined ? await disk.read(file) : { text: given };
  if ("words" in read) {
    const missing: ConfigFinding = { words: read.words, file, pointer: "" };
    return { tree: empty, findings: [missing], whole: false, missing };
  }
  const { source, document, findings } = parseConfigSource(file, read.text);
  // An included file may consist of comments only.
  const blank = included ? read.text.trim() === "" : document && isEmptyDocument(document);
  if (blank) {
    const words = problem.emptyFile(file);
    return { tree: empty, findings: [{ words, file, pointer: "" }], whole: false };
  }
  if (!document) return { tree: empty, findings, whole: false };
  const planted = buildTree(document, source);
  const all = [...planted.findings];
  const { tree } = planted;
  if (!isMapping(tree.value)) {
    const spot = locate(tree, "");
    all.push({ words: problem.notAMapping(), file, pointer: "", ...(spot ? { span: spot } : {}) });
    tree.value = {};
  }
  // A key whose content is completely commented out is ignored.
  const root = tree.value as Mapping;
  for (const key of Object.keys(root)) if (root[key] === null) delete root[key];
  return { tree, findings: all, whole: true };
}

const isEmptyDocument = ({ contents }: Document): boolean =>
  contents === null || (isScalar(contents) && contents.value === null);

type IncludeTarget = { path: string; pointer: string; spot: SourceSpan };

function listIncludes(
  tree: ConfigTree,
  find: (f: Omit<ConfigFinding, "file">) => void,
): IncludeTarget[] {
  const raw = (tree.value as Mapping)["include"];
  if (raw === undefined) return [];
  const list = Array.isArray(raw) ? raw : [raw];
  return list.flatMap((path: unknown, i) => {
    const pointer = Array.isArray(raw) ? childPointer("/include", i) : "/include";
    const spot = locate(tree, pointer)!;
    // The schema reports this error.
    if (typeof path !== "string" || path === "") return [];
    if (!path.includes("${")) return [{ path, pointer, spot }];
    find({ words: problem.includePath(), pointer, span: spot });
    return [];
  });
}

/**
 * Expands a `*` in the last segment of a path in the same way as a shell: without dot files, and
 * sorted.
 */
async function expandGlob(
  path: string,
  from: string,
  disk: ConfigFiles,
  report: (words: ConfigFinding["words"]) => void,
): Promise<string[]> {
  const full = resolve(dirname(from), path);
  if (!path.includes("*")) return [full];
  const folder = dirname(full);
  if (folder.includes("*")) {
    report(problem.includeStar(path));
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
    report(problem.includeFolder(folder));
    return [];
  }
}

function mergeTrees(into: ConfigTree, from: ConfigTree, file: string): ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  const target = into.value as Mapping;
  const twice = (pointer: string) => {
    const [first, second] = [into, from].map((tree) => {
      const place = tree.positions.get(pointer)!;
      return place.key ?? place.value;
    });
    const words = problem.definedTwice(pointer.split("/").at(-1)!, first!);
    findings.push({ words, file, pointer, span: second! });
  };
  const take = (pointer: string) => {
    for (const [at, place] of from.positions)
      if (isWithinPointer(at, pointer)) into.positions.set(at, place);
  };
  for (const [key, value] of Object.entries(from.value as Mapping)) {
    const pointer = childPointer("", key);
    const present = target[key];
    if (key === "include") {
      const spot = from.positions.get(pointer)!.key!;
      findings.push({ words: problem.includeNested(), file, pointer, span: spot });
    } else if (!Object.hasOwn(target, key)) {
      target[key] = value;
      take(pointer);
    } else if (isMapping(present) && isMapping(value)) {
      for (const [name, each] of Object.entries(value)) {
        const down = childPointer(pointer, name);
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
