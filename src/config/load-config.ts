// Entry point of the config layer: converts gateway.yaml to a frozen `GatewayConfig`, or reports
// all problems with their lines. It reads files, gets definitions through `LoadPlugin`, and never
// runs a plugin's setup. May import: lib, model, plugin (types). May not import: the loader, the
// gateway, a plugin.
import type { FileHashes } from "../lib/content-hash.ts";
import { accountNames, checkAccounts } from "./sections/account-config.ts";
import { checkScopes } from "./sections/scope-config.ts";
import { createRecordedFiles, createDiskFiles, type FileTexts } from "./source/config-files.ts";
import { checkAdmin } from "./sections/admin-config.ts";
import { FACTS_SCHEMA } from "./sections/model-facts.ts";
import { checkListen } from "./sections/listen-config.ts";
import { checkProxy } from "./sections/proxy-config.ts";
import { type MountContext, mountPlugins, markSecret } from "./mount-plugins.ts";
import { readConfig } from "./source/read-config.ts";
import { checkMiddleware, checkModels } from "./name-references.ts";
import type { ProblemText } from "./problems.ts";
import { parseTemplate } from "./source/interpolate.ts";
import {
  type ShownValue,
  listShownValues,
  formatConfig,
  type ConfigProvenance,
  redactValue,
  toShownConfig,
} from "./show-config.ts";
import { type ConfigOverrides, expandConfig } from "./expand-config.ts";
import { locateFindings } from "./problem-report.ts";
import { validateDurations, resolveConfig } from "./resolve-config.ts";
import { CONFIG_SCHEMA } from "./schema/config-schema.ts";
import type { ConfigFinding } from "./source/config-source.ts";
import type { SourceSpan } from "./source/source-span.ts";
import { type ReportProblem, substituteReferences } from "./source/substitute-references.ts";
import {
  childPointer,
  isMapping,
  locate,
  type Mapping,
  type ConfigTree,
  valueAt,
  isWithinPointer,
} from "./source/config-tree.ts";
import type { GatewayConfig, LoadPlugin, LocatedProblem } from "./gateway-config.ts";
import { validateValue } from "./schema/validate-value.ts";

export interface LoadConfigOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly loadPlugin: LoadPlugin;
  readonly overrides?: ConfigOverrides;
  /**
   * Text to use instead of the content of `file`, which does not have to exist. Paths in the text
   * are relative to that file.
   */
  readonly textOverride?: string;
  /** Texts that an earlier load of the same file read, to use instead of the files on disk. */
  readonly recordedTexts?: FileTexts;
  /**
   * Text that stands for values that were replaced. Problems with a value that contains it are not
   * reported.
   */
  readonly placeholder?: string;
}

export interface LoadedConfig {
  /** Undefined if any problem is an error. */
  readonly config: GatewayConfig | undefined;
  /** In file order. */
  readonly problems: readonly LocatedProblem[];
  /** All files that were read or could not be read. The file watcher watches them. */
  readonly sources: readonly string[];
  /** Texts that the config was built from, to build it again in another process. */
  readonly texts: FileTexts;
  /** Code files among the sources. */
  readonly codeFiles: FileHashes;
  /**
   * Returns a problem that was found after loading, with its position in the file. `id` is a
   * mount's ID, or a pointer ("/accounts/acme") to a key or value. Default of `side`: "value".
   */
  locate(id: string, words: ProblemText, side?: "key" | "value"): LocatedProblem;
  /** Returns the config without secrets, or an empty string if it has errors. */
  print(json?: boolean): string;
  /** Returns each value of `print` with its origin. Empty if the config has errors. */
  shownValues(): readonly ShownValue[];
  readonly namedSources: NamedSources;
}

/** Variables and files that the text refers to. */
export interface NamedSources {
  /**
   * Variables whose values are not secret. Their values may be shown wherever the text of the file
   * is shown.
   */
  readonly publicVariables: ReadonlySet<string>;
  /** Absolute paths of files whose text is a value. */
  readonly files: ReadonlySet<string>;
}

/**
 * @param file Absolute path.
 */
export async function loadConfig(file: string, options: LoadConfigOptions): Promise<LoadedConfig> {
  const disk = options.recordedTexts
    ? createRecordedFiles(options.recordedTexts)
    : createDiskFiles();
  const { readTexts } = disk;
  const { tree, files, findings, completeness } = await readConfig(
    file,
    disk,
    options.textOverride,
  );
  if (completeness === "none") {
    const problems = locateFindings(findings, { root: {}, files, secretSpans: [] });
    return { ...emptyResult(file), problems, sources: files, texts: readTexts };
  }
  const say = createReport(tree, file, findings);
  const broken = findings
    .filter((finding) => finding.isMissingValue)
    .map((finding) => finding.pointer);
  const substituted = await substituteReferences(tree, options.env, disk, say, broken);
  const { writtenTexts, unmountedProviders, missingPointers } = substituted;

  // A problem with a missing value only repeats the problem that reported it missing.
  const report: ReportProblem = (words, pointer, side, raw) => {
    const hole =
      side !== "key" && [...missingPointers].some((each) => isWithinPointer(pointer, each));
    const value =
      options.placeholder !== undefined && side !== "key" && valueAt(tree.value, pointer);
    const hadPlaceholder = typeof value === "string" && value.includes(options.placeholder!);
    if (!hole && !hadPlaceholder) say(words, pointer, side, raw);
  };
  const context: MountContext = {
    tree,
    substitution: substituted,
    report,
    secrets: new Set(),
    accountIds: completeness === "all" ? accountNames(tree.value as Mapping) : undefined,
    codeFiles: new Map(),
    describeValue: (pointer) => ({
      text: writtenTexts.get(pointer) ?? sourceTextAt(tree, pointer),
      mayShow: !writtenTexts.has(pointer),
    }),
  };
  const parsedRoot = tree.value as Mapping;
  const root = checkGatewayKeys(parsedRoot, context);
  checkModelFacts(root, context);
  validateDurations(root, report);
  const mounts = await mountPlugins(root, file, options.loadPlugin, context);
  // Names may be declared in a file that could not be read, so they are not reported as unknown.
  if (completeness === "all") {
    const entries = isMapping(root["providers"]) ? root["providers"] : {};
    const providers = Object.keys(entries);
    const clientProviders = providers.filter((name) => {
      const entry = entries[name];
      return isMapping(entry) && entry["credential"] === "client";
    });
    const names = { providers, unmountedProviders, clientProviders };
    checkMiddleware(root["middleware"], mounts, names, report);
    checkAccounts(root, mounts, report);
    checkScopes(root, names, report);
    if (isMapping(root["models"])) checkModels(root["models"], names, report);
  }

  const sources = [
    ...new Set([...files, ...substituted.referencedFiles, ...context.codeFiles.keys()]),
  ];
  const { overrides = {} } = options;
  const failed = findings.some((finding) => finding.words.severity === "error");
  const expanded = failed
    ? undefined
    : expandConfig(root, overrides, (pointer) => locate(tree, pointer)?.source.file ?? file);
  const config =
    expanded && resolveConfig(expanded.root, mounts, { file, sources, unmountedProviders });
  const movedFrom = expanded?.movedFrom ?? new Map<string, string>();
  const provenance: ConfigProvenance = { movedFrom, writtenTexts, secrets: context.secrets };
  const view =
    expanded &&
    redactValue(toShownConfig(expanded.root, mounts, unmountedProviders), "", provenance);
  const hide = [...context.secrets].flatMap((pointer): SourceSpan[] => {
    const place = tree.positions.get(pointer);
    return place ? [place.value] : [];
  });
  return {
    config,
    problems: locateFindings(findings, { root: parsedRoot, files, secretSpans: hide }),
    sources,
    texts: readTexts,
    codeFiles: context.codeFiles,
    locate(id, words, at) {
      const own = spanOf(tree, id, at);
      const [pointer, side] = mounts.find((m) => m.id === id)?.useLocation ?? own ?? ["", "key"];
      const spot = locate(tree, pointer, side);
      const finding = {
        words,
        file: spot?.source.file ?? file,
        pointer,
        ...(spot && { span: spot }),
      };
      return {
        ...locateFindings([finding], { root: parsedRoot, files, secretSpans: hide })[0]!,
        path: id,
      };
    },
    print: (json) => (config ? formatConfig(view, config, json) : ""),
    shownValues: () =>
      view ? listShownValues(view, { tree, overrides, written: writtenTexts, movedFrom }) : [],
    namedSources: {
      publicVariables: listPublicVariables(provenance),
      files: new Set(substituted.referencedFiles),
    },
  };
}

/** Returns the result for a file that could not be used. */
const emptyResult = (file: string): Omit<LoadedConfig, "problems" | "sources" | "texts"> => ({
  config: undefined,
  codeFiles: new Map(),
  locate: (path, words) => ({ ...words, file, line: 0, column: 0, path }),
  print: () => "",
  shownValues: () => [],
  namedSources: { publicVariables: new Set(), files: new Set() },
});

const WHEN_POINTER = /^\/providers\/[^/]+\/when$/;

/**
 * Returns the variables that are not secret. References in `when:` are ignored, because they only
 * test whether a variable is set, and the variable may contain a key.
 */
function listPublicVariables({
  writtenTexts,
  secrets,
}: Pick<ConfigProvenance, "writtenTexts" | "secrets">): ReadonlySet<string> {
  const open = new Set<string>();
  const closed = new Set<string>();
  for (const [pointer, text] of writtenTexts) {
    if (WHEN_POINTER.test(pointer)) continue;
    const names = secrets.has(pointer) ? closed : open;
    for (const part of parseTemplate(text).parts) if (part.kind === "env") names.add(part.name);
  }
  for (const name of closed) open.delete(name);
  return open;
}

/** Validates the gateway's own keys and fills in defaults. */
function checkGatewayKeys(raw: Mapping, context: MountContext): Mapping {
  const outside = (pointer: string) => context.substitution.writtenTexts.has(pointer);
  const { value, errors, secrets } = validateValue(
    CONFIG_SCHEMA,
    raw,
    outside,
    context.describeValue,
  );
  for (const { words, pointer, side } of errors) context.report(words, pointer, side);
  for (const pointer of secrets) markSecret(valueAt(value, pointer), pointer, context);
  checkListen(raw["listen"], context.report);
  checkProxy(raw["proxy"], context.report);
  checkAdmin(raw["admin"], context.report);
  return value as Mapping;
}

/** Validates model metadata, and converts values from variables and files to numbers. */
function checkModelFacts(root: Mapping, context: MountContext): void {
  const providers = isMapping(root["providers"]) ? root["providers"] : {};
  for (const [name, provider] of Object.entries(providers)) {
    const models = isMapping(provider) && isMapping(provider["models"]) ? provider["models"] : {};
    for (const [model, facts] of Object.entries(models)) {
      const at = childPointer(childPointer(childPointer("/providers", name), "models"), model);
      const outside = (pointer: string) => context.substitution.writtenTexts.has(at + pointer);
      const checked = validateValue(FACTS_SCHEMA, facts, outside, (pointer) =>
        context.describeValue(at + pointer),
      );
      models[model] = checked.value;
      for (const { words, pointer, side } of checked.errors)
        context.report(words, at + pointer, side);
    }
  }
}

function createReport(tree: ConfigTree, file: string, findings: ConfigFinding[]): ReportProblem {
  return (words, pointer, side, raw) => {
    const spot = locate(tree, pointer, side);
    const narrowedSpan = spot && raw !== undefined ? narrowSpan(spot, raw) : spot;
    const at = { file: spot?.source.file ?? file, pointer };
    findings.push({ words, ...at, ...(narrowedSpan ? { span: narrowedSpan } : {}) });
  };
}

/** Narrows the span to the reference, if the file spells it as the value does. */
function narrowSpan(span: SourceSpan, raw: string): SourceSpan {
  const from = span.source.text.slice(span.start, span.end).indexOf(raw);
  if (from < 0) return span;
  return { source: span.source, start: span.start + from, end: span.start + from + raw.length };
}

function sourceTextAt(tree: ConfigTree, pointer: string): string {
  const place = tree.positions.get(pointer);
  return place ? place.value.source.text.slice(place.value.start, place.value.end) : "";
}

/**
 * Returns the position of a pointer, or of its top-level key if the file does not contain the
 * pointer.
 */
function spanOf(
  tree: ConfigTree,
  id: string,
  side: "key" | "value" = "value",
): readonly [pointer: string, side: "key" | "value"] | undefined {
  const at = id.startsWith("/") ? id : childPointer("", id);
  return tree.positions.has(at) ? [at, side] : undefined;
}
