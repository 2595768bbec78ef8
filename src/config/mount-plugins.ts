// Loads the plugins that gateway.yaml names, and validates their options and credentials against
// their schemas. No `setup` of a plugin runs. The `check` function of a plugin is pure, so it may
// run.
import { CLIENT_CREDENTIAL } from "../model/usage.ts";
import { dirname, resolve } from "node:path";
import { publicErrorText } from "../model/error.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { Problem } from "../plugin/problem.ts";
import { EMPTY_SCHEMA, type Schema } from "./schema-dialect.ts";
import { isTemplate, parseTemplate } from "./source/interpolate.ts";
import { readOriginAt } from "./sections/plugin-needs.ts";
import { readPluginTrust } from "./plugin-lock.ts";
import { problem, SECTION_OF_KIND } from "./problems.ts";
import type { ReportProblem, Substitution } from "./source/substitute-references.ts";
import {
  childPointer,
  isMapping,
  locate,
  type Mapping,
  pointerSegments,
  type ConfigTree,
  valueAt,
} from "./source/config-tree.ts";
import type { LoadPlugin } from "./gateway-config.ts";
import { validateValue } from "./schema/validate-value.ts";
import type { DescribeValue } from "./schema/schema-errors.ts";

/** Pointer of the value or key that names the plugin. */
type UseLocation = readonly [pointer: string, side: "key" | "value"];

export interface PluginMount {
  /** "middleware.guard". A second mount is "middleware.guard-2". */
  readonly id: string;
  readonly kind: PluginKind;
  /** Pointer of the entry in the file. */
  readonly pointer: string;
  readonly use: string;
  readonly useLocation: UseLocation;
  readonly definition: any;
  readonly loadedFrom: string;
  readonly isBuiltIn: boolean;
  readonly version: string | undefined;
  readonly options: Mapping;
  /** Credentials of a provider, in list order, or the credential in `with:`. */
  readonly credentials: readonly Mapping[];
}

export interface MountContext {
  readonly tree: ConfigTree;
  readonly substitution: Substitution;
  readonly report: ReportProblem;
  readonly describeValue: DescribeValue;
  /** Pointers of all values that a schema marks as secret. Filled while plugins are mounted. */
  readonly secrets: Set<string>;
  /** Names under `accounts:`. Undefined if a file could not be read completely. */
  readonly accountIds: readonly string[] | undefined;
  /** Hashes of the files that plugins were loaded from. Filled while plugins are mounted. */
  readonly codeFiles: Map<string, string | undefined>;
}

interface PluginEntry {
  readonly kind: PluginKind;
  readonly pointer: string;
  readonly use: string;
  readonly useLocation: UseLocation;
  readonly raw: Mapping;
}

export async function mountPlugins(
  root: Mapping,
  mainFile: string,
  load: LoadPlugin,
  context: MountContext,
) {
  const trust = readPluginTrust(root, mainFile);
  const mounts = await Promise.all(
    listPluginEntries(root, context).map(
      async (entry): Promise<Omit<PluginMount, "id"> | undefined> => {
        const { kind, pointer, use, useLocation } = entry;
        const from = locate(context.tree, useLocation[0])?.source.file ?? mainFile;
        const isolate = entry.raw["isolate"] === "child" ? "child" : undefined;
        const found = await load(use, kind, from, trust, isolate);
        for (const [file, hash] of found.files ?? []) context.codeFiles.set(file, hash);
        if (found.warning) context.report(found.warning, ...useLocation);
        if ("problem" in found) {
          // For other kinds of plugins, `isolate` is reported as an unknown key elsewhere.
          if (!isolate || kind === "middleware")
            context.report({ severity: "error", ...found.problem }, ...useLocation);
          return undefined;
        }
        const { definition, version } = found;
        const { options, credentials } = validateOptions(entry, definition, context);
        if (options) runPluginCheck(entry, definition, found.from, options, context);
        const checked = { options: options ?? {}, credentials };
        return {
          kind,
          pointer,
          use,
          useLocation,
          definition,
          loadedFrom: found.from,
          isBuiltIn: found.isBuiltIn ?? false,
          version,
          ...checked,
        };
      },
    ),
  );
  const ids = new Set<string>();
  return mounts.flatMap((each): PluginMount[] =>
    each ? [{ id: mountIdOf(each, ids), ...each }] : [],
  );
}

/**
 * Returns the mount's ID, which is stable as long as the order of mounts with the same name does
 * not change.
 */
function mountIdOf(
  { kind, pointer, definition }: Omit<PluginMount, "id">,
  taken: Set<string>,
): string {
  if (kind === "store") return "store";
  if (kind === "provider") return `providers.${pointerSegments(pointer)[1]}`;
  const id = `${pointerSegments(pointer)[0]}.${definition.name}`;
  let free = id;
  for (let n = 2; taken.has(free); n++) free = `${id}-${n}`;
  taken.add(free);
  return free;
}

/** Returns the entries that have a readable `use`, even if they contain other errors. */
function listPluginEntries(
  root: Mapping,
  { substitution: { unmountedProviders, missingPointers } }: MountContext,
): PluginEntry[] {
  const entries: PluginEntry[] = [];
  const add = (kind: PluginKind, pointer: string, entry: unknown, otherwise?: string) => {
    const long = isMapping(entry) ? entry : {};
    const use =
      typeof entry === "string" ? entry : Object.hasOwn(long, "use") ? long["use"] : otherwise;
    if (typeof use !== "string" || use === "") return;
    if (missingPointers.has(pointer) || missingPointers.has(childPointer(pointer, "use"))) return;
    const useAt = Object.hasOwn(long, "use")
      ? ([childPointer(pointer, "use"), "value"] as const)
      : ([pointer, typeof entry === "string" ? "value" : "key"] as const);
    entries.push({ kind, pointer, use, useLocation: useAt, raw: long });
  };
  add("store", "/store", root["store"]);
  for (const kind of ["frontend", "middleware", "observer"] as const) {
    const section = SECTION_OF_KIND[kind];
    const list = root[section];
    if (Array.isArray(list))
      for (const [i, each] of list.entries()) add(kind, `/${section}/${i}`, each);
  }
  const providers = isMapping(root["providers"]) ? root["providers"] : {};
  for (const [name, each] of Object.entries(providers))
    if (
      !unmountedProviders.has(name) &&
      (isMapping(each) || each === null || typeof each === "string")
    )
      add("provider", childPointer("/providers", name), each, name);
  return entries;
}

/** Validates options and credentials. Options are undefined if they have errors. */
function validateOptions(
  { kind, pointer, raw: entry }: PluginEntry,
  definition: any,
  context: MountContext,
) {
  const at = childPointer(pointer, "with");
  const raw = isMapping(entry["with"]) ? entry["with"] : {};
  const options: Schema = definition.options ?? EMPTY_SCHEMA;
  if (kind !== "provider")
    return {
      options: validateAgainst(options, raw, at, propertyNamesOf(options), context),
      credentials: [],
    };

  // `with:` contains options and credential fields. The two schemas determine which is which.
  const credential: Schema = definition.credential ?? EMPTY_SCHEMA;
  const fields = new Set(propertyNamesOf(credential));
  const known = [...propertyNamesOf(options), ...fields];
  const part = (isField: boolean) =>
    Object.fromEntries(Object.entries(raw).filter(([key]) => fields.has(key) === isField));
  const list = entry["credentials"];
  const credentials: (Mapping | undefined)[] = [];
  if (entry["credential"] === "client") {
    const conflicts = Object.keys(part(true)).map((key) => childPointer(at, key));
    if (list !== undefined) conflicts.push(childPointer(pointer, "credentials"));
    for (const conflict of conflicts)
      context.report(
        problem.clientCredentialConflict(pointerSegments(conflict).at(-1)!),
        conflict,
        "key",
      );
    credentials.push({});
  } else if (Array.isArray(list)) {
    for (const key of Object.keys(part(true)))
      context.report(problem.fieldWithCredentials(key), childPointer(at, key), "key");
    const names = new Set<unknown>();
    for (const [i, each] of list.entries()) {
      if (!isMapping(each)) continue;
      const here = childPointer(childPointer(pointer, "credentials"), i);
      const name = each["name"];
      if (name === CLIENT_CREDENTIAL)
        context.report(problem.reservedCredentialName(name), childPointer(here, "name"));
      if (typeof name === "string" && names.has(name))
        context.report(problem.sameCredential(name), childPointer(here, "name"));
      names.add(name);
      const own = isMapping(each["with"]) ? each["with"] : {};
      credentials.push(
        validateAgainst(credential, own, childPointer(here, "with"), [...fields], context),
      );
    }
  } else credentials.push(validateAgainst(credential, part(true), at, known, context));
  checkClientAccounts(entry, pointer, context);
  // This check supplements the plugin's schema: providers are called only over HTTP, and the error
  // is found before any setup.
  const base = raw["base_url"];
  if (typeof base === "string" && base !== "" && !/^https?:$/.test(URL.parse(base)?.protocol ?? ""))
    context.report(problem.notAnAddress(), childPointer(at, "base_url"));
  return {
    options: validateAgainst(options, part(false), at, known, context),
    credentials: credentials.map((each) => each ?? {}),
  };
}

/** Checks which accounts may use their own credential. No account may unless it is listed. */
function checkClientAccounts(
  { credential, client_accounts: accounts }: Mapping,
  pointer: string,
  { accountIds, report }: MountContext,
): void {
  const at = childPointer(pointer, "client_accounts");
  if (credential !== "client") {
    if (accounts !== undefined) report(problem.clientAccountsUnused(), at, "key");
    return;
  }
  if (accounts === undefined)
    report(problem.clientAccountsMissing(), childPointer(pointer, "credential"));
  if (!Array.isArray(accounts)) return;
  for (const [i, name] of accounts.entries())
    if (typeof name === "string" && name !== "*" && accountIds?.includes(name) === false)
      report(problem.unknownAccount(name, accountIds), childPointer(at, i));
}

const propertyNamesOf = (schema: Schema): string[] =>
  isMapping(schema["properties"]) ? Object.keys(schema["properties"]) : [];

function validateAgainst(
  schema: Schema,
  given: Mapping,
  at: string,
  known: readonly string[],
  context: MountContext,
): Mapping | undefined {
  const { substitution, report } = context;
  const outside = (pointer: string) => substitution.writtenTexts.has(at + pointer);
  const result = validateValue(schema, given, outside, (pointer) =>
    context.describeValue(at + pointer),
  );
  for (const { words, pointer, side } of result.errors) {
    const unknown = words.id === "config/unknown-key" && pointerSegments(pointer).length === 1;
    report(
      unknown ? problem.unknownKey(pointerSegments(pointer)[0]!, known) : words,
      at + pointer,
      side,
    );
  }
  for (const pointer of result.secrets) markSecret(valueAt(given, pointer), at + pointer, context);
  for (const pointer of result.accounts) {
    const name = valueAt(result.value, pointer);
    if (typeof name === "string" && context.accountIds?.includes(name) === false)
      report(problem.unknownAccount(name, context.accountIds), at + pointer);
  }
  for (const pointer of result.origins)
    if (readOriginAt(result.value, pointer) === undefined)
      report(problem.notAnAddress(), at + pointer);
  if (result.errors.length > 0) return undefined;
  for (const pointer of result.paths) resolvePathOption(result.value, pointer, at, context);
  return result.value as Mapping;
}

/**
 * Resolves a path relative to the file that contains it. The plugin resolves a default value
 * itself.
 */
function resolvePathOption(
  value: unknown,
  pointer: string,
  at: string,
  { tree }: MountContext,
): void {
  const parent = valueAt(value, pointer.slice(0, pointer.lastIndexOf("/")));
  const key = pointerSegments(pointer).at(-1)!;
  const file = locate(tree, at + pointer)?.source.file;
  if (!tree.positions.has(at + pointer) || file === undefined || !isMapping(parent)) return;
  const path = parent[key];
  if (typeof path === "string")
    (parent as { [key: string]: unknown })[key] = resolve(dirname(file), path);
}

/** Marks the value at a pointer as secret, and warns if the file contains it literally. */
export function markSecret(value: unknown, pointer: string, context: MountContext): void {
  const { substitution, report, secrets, tree } = context;
  for (const [leaf, text] of listTextLeaves(value, pointer)) {
    secrets.add(leaf);
    if (tree.positions.has(leaf) && isLiteral(substitution.writtenTexts.get(leaf) ?? text))
      report(problem.literalSecret(), leaf);
  }
}

/** Whether the file contains the text itself, including as the default of a variable. */
function isLiteral(text: string): boolean {
  if (!isTemplate(text)) return text !== "";
  const { parts } = parseTemplate(text);
  return parts.every((p) => p.kind === "text") || parts.some((p) => p.kind === "env" && p.fallback);
}

/** Returns every text and number below a pointer, as text. */
export function listTextLeaves(value: unknown, pointer: string): [pointer: string, text: string][] {
  if (typeof value === "string") return [[pointer, value]];
  if (typeof value === "number") return [[pointer, String(value)]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    listTextLeaves(each, childPointer(pointer, key)),
  );
}

function runPluginCheck(
  { pointer, useLocation }: PluginEntry,
  definition: any,
  from: string,
  options: Mapping,
  context: MountContext,
) {
  const at = childPointer(pointer, "with");
  if (
    context.substitution.missingPointers.size > 0 &&
    [...context.substitution.missingPointers].some((h) => h.startsWith(`${at}/`))
  )
    return;
  try {
    for (const { path, message, hint, severity } of (definition.check?.(options) ??
      []) as Iterable<Problem>) {
      const below = path === "" || path.startsWith("/") ? path : `/${path}`;
      context.report(
        problem.pluginProblem(severity ?? "error", message, hint ?? undefined),
        at + below,
      );
    }
  } catch (error) {
    context.report(problem.checkFailed(from, publicErrorText(error)), ...useLocation);
  }
}
