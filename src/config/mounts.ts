// The plugins that the file names: loaded, their options and credentials checked against what each of them says it
// takes. Runs no plugin's `setup`; a plugin's `check` is pure.
import { dirname, resolve } from "node:path";
import { sayable } from "../model/error.ts";
import type { PluginKind } from "../plugin/define.ts";
import { deprecatedIn } from "../plugin/deprecated.ts";
import type { Problem } from "../plugin/problem.ts";
import { NOTHING, type Schema } from "./dialect.ts";
import { isTemplate, parseTemplate } from "./interpolate.ts";
import { originAt } from "./origins.ts";
import { trustIn } from "./plugin-lock.ts";
import { problem, SECTION } from "./problems.ts";
import type { Report, Substitution } from "./substitute.ts";
import { below, isMapping, locate, type Mapping, steps, type Tree, valueAt } from "./tree.ts";
import type { LoadPlugin } from "./types.ts";
import { validate } from "./validate.ts";
import type { ValueText } from "./diagnose.ts";

/** The pointer of what says which plugin it is, and the side of it. */
type UseAt = readonly [pointer: string, side: "key" | "value"];

export interface Mount {
  /** "middleware.guard"; of two, the second is "middleware.guard-2". */
  readonly id: string;
  readonly kind: PluginKind;
  /** Of the entry in the file. */
  readonly pointer: string;
  readonly use: string;
  readonly useAt: UseAt;
  readonly definition: any;
  readonly from: string;
  readonly version: string | undefined;
  readonly options: Mapping;
  /** A provider's: by their place in the list, or the one in `with:`. */
  readonly credentials: readonly Mapping[];
}

export interface MountInputs {
  readonly tree: Tree;
  readonly substituted: Substitution;
  readonly report: Report;
  readonly written: ValueText;
  /** Pointers of every value that some schema calls secret. Grows. */
  readonly secrets: Set<string>;
  /** What stands under `accounts:`; undefined: not all of it could be read. */
  readonly accounts: readonly string[] | undefined;
  /** Files that plugins were read from, as they were then. Grows. */
  readonly code: Map<string, string | undefined>;
}

interface Entry {
  readonly kind: PluginKind;
  readonly pointer: string;
  readonly use: string;
  readonly useAt: UseAt;
  readonly said: Mapping;
}

export async function mount(root: Mapping, mainFile: string, load: LoadPlugin, desk: MountInputs) {
  const trust = trustIn(root, mainFile);
  const mounts = await Promise.all(
    entriesOf(root, desk).map(async (entry): Promise<Omit<Mount, "id"> | undefined> => {
      const { kind, pointer, use, useAt } = entry;
      const from = locate(desk.tree, useAt[0])?.source.file ?? mainFile;
      const isolate = entry.said["isolate"] === "child" ? "child" : undefined;
      const found = await load(use, kind, from, trust, isolate);
      for (const [file, hash] of found.files ?? []) desk.code.set(file, hash);
      if (found.remark) desk.report(found.remark, ...useAt);
      if ("problem" in found) {
        // That only a middleware can be isolated is said at the key, which other kinds do not have.
        if (!isolate || kind === "middleware")
          desk.report({ severity: "error", ...found.problem }, ...useAt);
        return undefined;
      }
      const { definition, version } = found;
      for (const { member, since, write } of deprecatedIn(kind, "definition", definition))
        desk.report(problem.deprecatedMember(found.from, member, since, write), ...useAt);
      const { options, credentials } = optionsOf(entry, definition, desk);
      if (options) complain(entry, definition, found.from, options, desk);
      const checked = { options: options ?? {}, credentials };
      return { kind, pointer, use, useAt, definition, from: found.from, version, ...checked };
    }),
  );
  const ids = new Set<string>();
  return mounts.flatMap((each): Mount[] => (each ? [{ id: idOf(each, ids), ...each }] : []));
}

/** Stable while the order of its namesakes is. */
function idOf({ kind, pointer, definition }: Omit<Mount, "id">, taken: Set<string>): string {
  if (kind === "store") return "store";
  if (kind === "provider") return `providers.${steps(pointer)[1]}`;
  const id = `${steps(pointer)[0]}.${definition.name}`;
  let free = id;
  for (let n = 2; taken.has(free); n++) free = `${id}-${n}`;
  taken.add(free);
  return free;
}

/** Whatever has a `use` that can be read, however wrong the rest of it is. */
function entriesOf(root: Mapping, { substituted: { unmounted, holes } }: MountInputs): Entry[] {
  const entries: Entry[] = [];
  const add = (kind: PluginKind, pointer: string, said: unknown, otherwise?: string) => {
    const long = isMapping(said) ? said : {};
    const use =
      typeof said === "string" ? said : Object.hasOwn(long, "use") ? long["use"] : otherwise;
    if (typeof use !== "string" || use === "") return;
    if (holes.has(pointer) || holes.has(below(pointer, "use"))) return;
    const useAt = Object.hasOwn(long, "use")
      ? ([below(pointer, "use"), "value"] as const)
      : ([pointer, typeof said === "string" ? "value" : "key"] as const);
    entries.push({ kind, pointer, use, useAt, said: long });
  };
  add("store", "/store", root["store"]);
  for (const kind of ["frontend", "middleware", "observer"] as const) {
    const section = SECTION[kind];
    const list = root[section];
    if (Array.isArray(list))
      for (const [i, each] of list.entries()) add(kind, `/${section}/${i}`, each);
  }
  const providers = isMapping(root["providers"]) ? root["providers"] : {};
  for (const [name, each] of Object.entries(providers))
    if (!unmounted.has(name) && (isMapping(each) || each === null || typeof each === "string"))
      add("provider", below("/providers", name), each, name);
  return entries;
}

/** Options are undefined when something is wrong with them. */
function optionsOf({ kind, pointer, said }: Entry, definition: any, desk: MountInputs) {
  const at = below(pointer, "with");
  const given = isMapping(said["with"]) ? said["with"] : {};
  const options: Schema = definition.options ?? NOTHING;
  if (kind !== "provider")
    return { options: checked(options, given, at, keysOf(options), desk), credentials: [] };

  // One `with:` holds both; whose a key is, the two schemas say.
  const credential: Schema = definition.credential ?? NOTHING;
  const fields = new Set(keysOf(credential));
  const known = [...keysOf(options), ...fields];
  const part = (isField: boolean) =>
    Object.fromEntries(Object.entries(given).filter(([key]) => fields.has(key) === isField));
  const list = said["credentials"];
  const credentials: (Mapping | undefined)[] = [];
  if (Array.isArray(list)) {
    for (const key of Object.keys(part(true)))
      desk.report(problem.fieldBesideCredentials(key), below(at, key), "key");
    const names = new Set<unknown>();
    for (const [i, each] of list.entries()) {
      if (!isMapping(each)) continue;
      const here = below(below(pointer, "credentials"), i);
      const name = each["name"];
      if (typeof name === "string" && names.has(name))
        desk.report(problem.sameCredential(name), below(here, "name"));
      names.add(name);
      const own = isMapping(each["with"]) ? each["with"] : {};
      credentials.push(checked(credential, own, below(here, "with"), [...fields], desk));
    }
  } else credentials.push(checked(credential, part(true), at, known, desk));
  // Whatever its schema lets through: what is asked over HTTP is asked nowhere else, and it is known before any setup.
  const base = given["base_url"];
  if (typeof base === "string" && base !== "" && !/^https?:$/.test(URL.parse(base)?.protocol ?? ""))
    desk.report(problem.notAnAddress(), below(at, "base_url"));
  return {
    options: checked(options, part(false), at, known, desk),
    credentials: credentials.map((each) => each ?? {}),
  };
}

const keysOf = (schema: Schema): string[] =>
  isMapping(schema["properties"]) ? Object.keys(schema["properties"]) : [];

function checked(
  schema: Schema,
  given: Mapping,
  at: string,
  known: readonly string[],
  desk: MountInputs,
): Mapping | undefined {
  const { substituted, report } = desk;
  const outside = (pointer: string) => substituted.written.has(at + pointer);
  const result = validate(schema, given, outside, (pointer) => desk.written(at + pointer));
  for (const { words, pointer, side } of result.complaints) {
    const unknown = words.id === "config/unknown-key" && steps(pointer).length === 1;
    report(unknown ? problem.unknownKey(steps(pointer)[0]!, known) : words, at + pointer, side);
  }
  for (const pointer of result.secrets) noteSecret(valueAt(given, pointer), at + pointer, desk);
  for (const pointer of result.accounts) {
    const name = valueAt(result.value, pointer);
    if (typeof name === "string" && desk.accounts?.includes(name) === false)
      report(problem.unknownAccount(name, desk.accounts), at + pointer);
  }
  for (const pointer of result.origins)
    if (originAt(result.value, pointer) === undefined) report(problem.notAnAddress(), at + pointer);
  if (result.complaints.length > 0) return undefined;
  for (const pointer of result.paths) resolvePath(result.value, pointer, at, desk);
  return result.value as Mapping;
}

/** Makes a path absolute that is relative to the file in which it is written. A default is the plugin's own business. */
function resolvePath(value: unknown, pointer: string, at: string, { tree }: MountInputs): void {
  const parent = valueAt(value, pointer.slice(0, pointer.lastIndexOf("/")));
  const key = steps(pointer).at(-1)!;
  const file = locate(tree, at + pointer)?.source.file;
  if (!tree.places.has(at + pointer) || file === undefined || !isMapping(parent)) return;
  const path = parent[key];
  if (typeof path === "string")
    (parent as { [key: string]: unknown })[key] = resolve(dirname(file), path);
}

/** What stands at a pointer is to be hidden, and should not stand in the file itself. */
export function noteSecret(value: unknown, pointer: string, desk: MountInputs): void {
  const { substituted, report, secrets, tree } = desk;
  for (const [leaf, text] of leaves(value, pointer)) {
    secrets.add(leaf);
    if (tree.places.has(leaf) && isLiteral(substituted.written.get(leaf) ?? text))
      report(problem.literalSecret(), leaf);
  }
}

/** In the file itself, be it as the default of a variable. */
function isLiteral(text: string): boolean {
  if (!isTemplate(text)) return text !== "";
  const { parts } = parseTemplate(text);
  return (
    parts.every((p) => p.kind === "text") || parts.some((p) => p.kind === "env" && p.otherwise)
  );
}

/** Every text below a pointer. */
export function leaves(value: unknown, pointer: string): [pointer: string, text: string][] {
  if (typeof value === "string") return [[pointer, value]];
  if (typeof value === "number") return [[pointer, String(value)]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => leaves(each, below(pointer, key)));
}

function complain(
  { pointer, useAt }: Entry,
  definition: any,
  from: string,
  options: Mapping,
  desk: MountInputs,
) {
  const at = below(pointer, "with");
  if (
    desk.substituted.holes.size > 0 &&
    [...desk.substituted.holes].some((h) => h.startsWith(`${at}/`))
  )
    return;
  try {
    for (const { path, message, hint, severity } of (definition.check?.(options) ??
      []) as Iterable<Problem>) {
      const below = path === "" || path.startsWith("/") ? path : `/${path}`;
      desk.report(problem.complaint(severity ?? "error", message, hint ?? undefined), at + below);
    }
  } catch (error) {
    desk.report(problem.checkFailed(from, sayable(error)), ...useAt);
  }
}
