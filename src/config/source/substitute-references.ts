// Determines which providers are mounted, and then replaces every `${…}` in the mounted parts. A
// provider that `when:` excludes keeps its text as written, so that a machine without its key can
// read the file.
import type { ConfigFiles } from "./config-files.ts";
import { problem, type ProblemText } from "../problems.ts";
import {
  type TemplatePart,
  type InterpolationSources,
  fillTemplate,
  listTemplateFiles,
  isTemplate,
  parseTemplate,
  readFiles,
} from "./interpolate.ts";
import {
  childPointer,
  isMapping,
  locate,
  type Mapping,
  type ConfigTree,
  isWithinPointer,
} from "./config-tree.ts";

/**
 * @param raw The affected part of the value, if it is not the whole value.
 */
export type ReportProblem = (
  words: ProblemText,
  pointer: string,
  side?: "key" | "value",
  raw?: string,
) => void;

export interface Substitution {
  /** Original text of every value that was read from a variable or file, by pointer. */
  readonly writtenTexts: ReadonlyMap<string, string>;
  /**
   * Pointers of required values that do not exist. Other problems with these values are not
   * reported.
   */
  readonly missingPointers: ReadonlySet<string>;
  /** Reasons why providers are not mounted, by provider. */
  readonly unmountedProviders: ReadonlyMap<string, string>;
  /** Absolute paths of `${file:}` references. */
  readonly referencedFiles: readonly string[];
}

const USE_POINTER = /^\/(store|(frontends|middleware)\/\d+|providers\/[^/]+)(\/use)?$/;

interface Template {
  readonly pointer: string;
  readonly text: string;
  readonly parts: readonly TemplatePart[];
  readonly file: string;
  readonly setValue: (value: string) => void;
}

/**
 * Changes the leaves of the tree in place.
 * @param known Pointers of values that are already known to be missing.
 */
export async function substituteReferences(
  tree: ConfigTree,
  env: InterpolationSources["env"],
  disk: ConfigFiles,
  report: ReportProblem,
  known: Iterable<string>,
): Promise<Substitution> {
  const written = new Map<string, string>();
  const holes = new Set(known);
  const files = new Set<string>();
  const templates = collectTemplates(tree, report, holes);

  const apply = async (some: readonly Template[]) => {
    const named = some.flatMap((t) => listTemplateFiles(t.parts, t.file, env));
    for (const file of named) files.add(file);
    const of: InterpolationSources = { env, files: await readFiles(named, disk) };
    for (const { pointer, text, parts, file, setValue } of some) {
      const filled = fillTemplate(parts, file, of);
      for (const { words, raw } of filled.flaws) report(words, pointer, "value", raw);
      if (filled.flaws.length > 0) holes.add(pointer);
      if (parts.some((part) => part.kind !== "text")) written.set(pointer, text);
      setValue(filled.text);
    }
  };

  const isWhen = ({ pointer }: Template) => /^\/providers\/[^/]+\/when$/.test(pointer);
  await apply(templates.filter(isWhen));
  const unmounted = findUnmounted(tree, written, holes, env);
  const out = [...unmounted.keys()].map((name) => childPointer("/providers", name));
  const rest = templates.filter((t) => !isWhen(t));
  const asleep = (t: Template) => out.some((pointer) => isWithinPointer(t.pointer, pointer));
  for (const { pointer } of rest.filter(asleep)) holes.add(pointer);
  await apply(rest.filter((t) => !asleep(t)));
  return {
    writtenTexts: written,
    missingPointers: holes,
    unmountedProviders: unmounted,
    referencedFiles: [...files],
  };
}

function collectTemplates(tree: ConfigTree, report: ReportProblem, holes: Set<string>): Template[] {
  const templates: Template[] = [];
  const walk = (holder: Mapping, pointer: string) => {
    for (const [key, value] of Object.entries(holder)) {
      const here = childPointer(pointer, key);
      if (here === "/include") continue;
      if (typeof value === "object" && value !== null) walk(value as Mapping, here);
      else if (typeof value === "string" && isTemplate(value)) {
        if (USE_POINTER.test(here)) {
          // Only the file determines which plugins run, and never the environment.
          report(problem.interpolatedUse(), here);
          holes.add(here);
          continue;
        }
        const { parts, flaws } = parseTemplate(value);
        for (const { words, raw } of flaws) report(words, here, "value", raw);
        if (flaws.length > 0) holes.add(here);
        const { file } = locate(tree, here)!.source;
        const put = (text: string) => void (holder[key] = text);
        if (flaws.length === 0)
          templates.push({ pointer: here, text: value, parts, file, setValue: put });
      }
    }
  };
  walk(tree.value as Mapping, "");
  return templates;
}

function findUnmounted(
  tree: ConfigTree,
  written: ReadonlyMap<string, string>,
  holes: ReadonlySet<string>,
  env: InterpolationSources["env"],
): Map<string, string> {
  const providers = (tree.value as Mapping)["providers"];
  const out = new Map<string, string>();
  if (!isMapping(providers)) return out;
  for (const [name, provider] of Object.entries(providers)) {
    const pointer = childPointer(childPointer("/providers", name), "when");
    if (!isMapping(provider) || !Object.hasOwn(provider, "when") || holes.has(pointer)) continue;
    const condition = provider["when"];
    if (typeof condition === "object" && condition !== null) continue;
    const text = String(condition ?? "")
      .trim()
      .toLowerCase();
    if (!["", "false", "0"].includes(text)) continue;
    const from = written.get(pointer);
    const wanting = text === "" && from ? describeMissingVariables(from, env) : "";
    const because = `its when: value is ${text === "" ? "empty" : text}${from ? ` (${from})` : ""}`;
    out.set(name, wanting || because);
  }
  return out;
}

/** Describes the variables that are missing: "OPENAI_API_KEY is not set". */
function describeMissingVariables(text: string, env: InterpolationSources["env"]): string {
  const names = [...text.matchAll(/\$\{env:(\w+)/g)].map(([, name]) => name!);
  return [...new Set(names)]
    .map((name) => `${name} is ${env[name] === undefined ? "not set" : "empty"}`)
    .join(", ");
}
