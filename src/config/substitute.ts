// Which providers are mounted, then every `${…}` in what is. A provider that `when:` leaves out keeps its text as written:
// a machine without its key can still read the file.
import type { Disk } from "./disk.ts";
import { problem, type ProblemText } from "./problems.ts";
import {
  type TemplatePart,
  type InterpolationSources,
  fill,
  filesOf,
  isTemplate,
  parseTemplate,
  readFiles,
} from "./interpolate.ts";
import { below, isMapping, locate, type Mapping, type Tree, within } from "./tree.ts";

/** `raw`: the part of the value that is meant, when it is not all of it. */
export type Report = (
  words: ProblemText,
  pointer: string,
  side?: "key" | "value",
  raw?: string,
) => void;

export interface Substitution {
  /** By pointer, the text as written of every value that came from outside. */
  readonly written: ReadonlyMap<string, string>;
  /** Where a value should be and is not: what else is wrong with it is only an echo. */
  readonly holes: ReadonlySet<string>;
  /** By provider, why it is not mounted. */
  readonly unmounted: ReadonlyMap<string, string>;
  /** What `${file:}` named, absolute. */
  readonly files: readonly string[];
}

const USE = /^\/(store|(frontends|middleware)\/\d+|providers\/[^/]+)(\/use)?$/;

interface Template {
  readonly pointer: string;
  readonly text: string;
  readonly parts: readonly TemplatePart[];
  readonly file: string;
  readonly put: (value: string) => void;
}

/** Changes the tree's leaves in place. `known`: the holes that there are already. */
export async function substitute(
  tree: Tree,
  env: InterpolationSources["env"],
  disk: Disk,
  report: Report,
  known: Iterable<string>,
): Promise<Substitution> {
  const written = new Map<string, string>();
  const holes = new Set(known);
  const files = new Set<string>();
  const templates = collect(tree, report, holes);

  const apply = async (some: readonly Template[]) => {
    const named = some.flatMap((t) => filesOf(t.parts, t.file, env));
    for (const file of named) files.add(file);
    const of: InterpolationSources = { env, files: await readFiles(named, disk) };
    for (const { pointer, text, parts, file, put } of some) {
      const filled = fill(parts, file, of);
      for (const { words, raw } of filled.flaws) report(words, pointer, "value", raw);
      if (filled.flaws.length > 0) holes.add(pointer);
      if (parts.some((part) => part.kind !== "text")) written.set(pointer, text);
      put(filled.text);
    }
  };

  const isWhen = ({ pointer }: Template) => /^\/providers\/[^/]+\/when$/.test(pointer);
  await apply(templates.filter(isWhen));
  const unmounted = leftOut(tree, written, holes, env);
  const out = [...unmounted.keys()].map((name) => below("/providers", name));
  const rest = templates.filter((t) => !isWhen(t));
  const asleep = (t: Template) => out.some((pointer) => within(t.pointer, pointer));
  for (const { pointer } of rest.filter(asleep)) holes.add(pointer);
  await apply(rest.filter((t) => !asleep(t)));
  return { written, holes, unmounted, files: [...files] };
}

function collect(tree: Tree, report: Report, holes: Set<string>): Template[] {
  const templates: Template[] = [];
  const walk = (holder: Mapping, pointer: string) => {
    for (const [key, value] of Object.entries(holder)) {
      const here = below(pointer, key);
      if (here === "/include") continue;
      if (typeof value === "object" && value !== null) walk(value as Mapping, here);
      else if (typeof value === "string" && isTemplate(value)) {
        if (USE.test(here)) {
          // What runs is what the file says, never what an environment says.
          report(problem.interpolatedUse(), here);
          holes.add(here);
          continue;
        }
        const { parts, flaws } = parseTemplate(value);
        for (const { words, raw } of flaws) report(words, here, "value", raw);
        if (flaws.length > 0) holes.add(here);
        const { file } = locate(tree, here)!.source;
        const put = (text: string) => void (holder[key] = text);
        if (flaws.length === 0) templates.push({ pointer: here, text: value, parts, file, put });
      }
    }
  };
  walk(tree.value as Mapping, "");
  return templates;
}

function leftOut(
  tree: Tree,
  written: ReadonlyMap<string, string>,
  holes: ReadonlySet<string>,
  env: InterpolationSources["env"],
): Map<string, string> {
  const providers = (tree.value as Mapping)["providers"];
  const out = new Map<string, string>();
  if (!isMapping(providers)) return out;
  for (const [name, provider] of Object.entries(providers)) {
    const pointer = below(below("/providers", name), "when");
    if (!isMapping(provider) || !Object.hasOwn(provider, "when") || holes.has(pointer)) continue;
    const said = provider["when"];
    if (typeof said === "object" && said !== null) continue;
    const text = String(said ?? "")
      .trim()
      .toLowerCase();
    if (!["", "false", "0"].includes(text)) continue;
    const from = written.get(pointer);
    const wanting = text === "" && from ? missingIn(from, env) : "";
    const because = `its when: is ${text === "" ? "empty" : text}${from ? ` (${from})` : ""}`;
    out.set(name, wanting || because);
  }
  return out;
}

/** Which variables would fill it: "OPENAI_API_KEY is not set". */
function missingIn(text: string, env: InterpolationSources["env"]): string {
  const names = [...text.matchAll(/\$\{env:(\w+)/g)].map(([, name]) => name!);
  return [...new Set(names)]
    .map((name) => `${name} is ${env[name] === undefined ? "not set" : "empty"}`)
    .join(", ");
}
