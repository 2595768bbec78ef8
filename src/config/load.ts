// The config floor: gateway.yaml → a frozen GatewayConfig, or every problem at once, each at its line. Reads files, asks
// the loader (by its promise `Load`) for definitions, and never runs a plugin's setup.
// May import: lib, model, plugin (types). May not: the loader, the gateway, a plugin.
import type { FilesRead } from "../lib/contents.ts";
import { accountNames, checkAccounts } from "./accounts.ts";
import { keptDisk, realDisk, type Texts } from "./disk.ts";
import { checkAdmin } from "./admin.ts";
import { FACTS } from "./facts.ts";
import { checkListen } from "./listen.ts";
import { checkProxy } from "./proxy.ts";
import { type MountInputs, mount, noteSecret } from "./mounts.ts";
import { readConfig } from "./read.ts";
import { checkMiddleware, checkModels } from "./references.ts";
import type { ProblemText } from "./problems.ts";
import { parseTemplate } from "./interpolate.ts";
import { type ShownValue, shownValues } from "./provenance.ts";
import { printConfig, type Provenance, sourceOf, viewConfig } from "./redact.ts";
import { locateAll } from "./report.ts";
import { checkDurations, type Overrides, resolve } from "./resolve.ts";
import { carryOver, RETIRED, type RetiredKey } from "./retired.ts";
import { SKELETON } from "./skeleton.ts";
import type { SourceFinding } from "./source.ts";
import type { Spot } from "./spot.ts";
import { type Report, substitute } from "./substitute.ts";
import { below, isMapping, locate, type Mapping, type Tree, valueAt, within } from "./tree.ts";
import type { GatewayConfig, LoadPlugin, Located } from "./types.ts";
import { validate } from "./validate.ts";

export interface LoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly load: LoadPlugin;
  readonly overrides?: Overrides;
  /** In place of what `file` says; it then need not exist. Paths are still relative to it. */
  readonly text?: string;
  /** In place of the disk: what an earlier load of the same file read there. */
  readonly texts?: Texts;
  /** It stands in values in whose place something else was put: what is wrong with one of those is no problem of the file. */
  readonly standIn?: string;
  /** Keys that have gone, in place of those that have. For tests of what becomes of them. */
  readonly retired?: readonly RetiredKey[];
}

export interface LoadedConfig {
  /** Undefined when any problem is an error. */
  readonly config: GatewayConfig | undefined;
  /** In file order. */
  readonly problems: readonly Located[];
  /** Everything that was read or looked for, also when it failed: what a watcher watches. */
  readonly sources: readonly string[];
  /** What it was made of, to make it again elsewhere. */
  readonly texts: Texts;
  /** The files of code among the sources. */
  readonly code: FilesRead;
  /**
   * The place in the file of a problem that was found after loading, with a mount (by its id) or with the key or value at a pointer
   * ("/accounts/acme"). Default of `side`: "value".
   */
  place(id: string, words: ProblemText, side?: "key" | "value"): Located;
  /** The config as it may be shown; empty without one. */
  print(json?: boolean): string;
  /** The same value by value, each with where it comes from; none without a config. */
  values(): readonly ShownValue[];
  readonly named: NamedSources;
}

/** What a text names beside itself. */
export interface NamedSources {
  /** Variables whose values are no secrets: they stand where what is written may be shown. */
  readonly open: ReadonlySet<string>;
  /** Files whose text is a value, absolute. */
  readonly files: ReadonlySet<string>;
}

/** `file`: absolute. */
export async function loadConfig(file: string, of: LoadOptions): Promise<LoadedConfig> {
  const disk = of.texts ? keptDisk(of.texts) : realDisk();
  const { texts } = disk;
  const { tree, files, findings, read } = await readConfig(file, disk, of.text);
  if (read === "none") {
    const problems = locateAll(findings, { root: {}, files, hide: [] });
    return { ...unread(file), problems, sources: files, texts };
  }
  const say = reporter(tree, file, findings);
  carryOver(tree, of.retired ?? RETIRED, say);
  const broken = findings.filter((finding) => finding.hole).map((finding) => finding.pointer);
  const substituted = await substitute(tree, of.env, disk, say, broken);
  const { written, unmounted, holes } = substituted;

  // What is wrong with a value that is not there is only an echo.
  const report: Report = (words, pointer, side, raw) => {
    const hole = side !== "key" && [...holes].some((each) => within(pointer, each));
    const value = of.standIn !== undefined && side !== "key" && valueAt(tree.value, pointer);
    const stood = typeof value === "string" && value.includes(of.standIn!);
    if (!hole && !stood) say(words, pointer, side, raw);
  };
  const desk: MountInputs = {
    tree,
    substituted,
    report,
    secrets: new Set(),
    accounts: read === "all" ? accountNames(tree.value as Mapping) : undefined,
    code: new Map(),
    written: (pointer) => ({
      text: written.get(pointer) ?? textAt(tree, pointer),
      mayShow: !written.has(pointer),
    }),
  };
  const said = tree.value as Mapping;
  const root = checkSkeleton(said, desk);
  checkFacts(root, desk);
  checkDurations(root, report);
  const mounts = await mount(root, file, of.load, desk);
  // What a broken file would have declared cannot be missed.
  if (read === "all") {
    const providers = isMapping(root["providers"]) ? Object.keys(root["providers"]) : [];
    const names = { providers, unmounted };
    checkMiddleware(root["middleware"], mounts, names, report);
    checkAccounts(root, mounts, report);
    if (isMapping(root["models"])) checkModels(root["models"], names, report);
  }

  const sources = [...new Set([...files, ...substituted.files, ...desk.code.keys()])];
  const shownAs: Provenance = { root: said, written, secrets: desk.secrets };
  const failed = findings.some((finding) => finding.words.severity === "error");
  const config = failed
    ? undefined
    : resolve(root, mounts, {
        file,
        sources,
        stateFrom: locate(tree, "/state_dir")?.source.file ?? file,
        listenFrom: locate(tree, "/listen")?.source.file ?? file,
        adminFrom: locate(tree, "/admin")?.source.file ?? file,
        unmounted,
        overrides: of.overrides ?? {},
      });
  const hide = [...desk.secrets].flatMap((pointer): Spot[] => {
    const place = tree.places.get(pointer);
    return place ? [place.value] : [];
  });
  return {
    config,
    problems: locateAll(findings, { root: said, files, hide }),
    sources,
    texts,
    code: desk.code,
    place(id, words, at) {
      const own = placeOf(tree, id, at);
      const [pointer, side] = mounts.find((m) => m.id === id)?.useAt ?? own ?? ["", "key"];
      const spot = locate(tree, pointer, side);
      const finding = { words, file: spot?.source.file ?? file, pointer, ...(spot && { spot }) };
      return { ...locateAll([finding], { root: said, files, hide })[0]!, path: id };
    },
    print: (json) => (config ? printConfig(config, shownAs, json) : ""),
    values: () => (config ? valuesOf(config, shownAs, { tree, overrides: of.overrides }) : []),
    named: { open: openVariables(shownAs), files: new Set(substituted.files) },
  };
}

/** What is said of a file that nothing could be made of. */
const unread = (file: string): Omit<LoadedConfig, "problems" | "sources" | "texts"> => ({
  config: undefined,
  code: new Map(),
  place: (path, words) => ({ ...words, file, line: 0, column: 0, path }),
  print: () => "",
  values: () => [],
  named: { open: new Set(), files: new Set() },
});

const valuesOf = (
  config: GatewayConfig,
  of: Provenance,
  { tree, overrides = {} }: { tree: Tree; overrides: Overrides | undefined },
): readonly ShownValue[] =>
  shownValues(viewConfig(config, of), {
    tree,
    overrides,
    written: of.written,
    source: (pointer) => sourceOf(pointer, of.root),
  });

const WHEN = /^\/providers\/[^/]+\/when$/;

/** A key that `when:` only looks for is a secret all the same. */
function openVariables({ written, secrets }: Provenance): ReadonlySet<string> {
  const open = new Set<string>();
  const closed = new Set<string>();
  for (const [pointer, text] of written) {
    if (WHEN.test(pointer)) continue;
    const names = secrets.has(pointer) ? closed : open;
    for (const part of parseTemplate(text).parts) if (part.kind === "env") names.add(part.name);
  }
  for (const name of closed) open.delete(name);
  return open;
}

/** The gateway's own keys, defaults filled in. */
function checkSkeleton(said: Mapping, desk: MountInputs): Mapping {
  const outside = (pointer: string) => desk.substituted.written.has(pointer);
  const { value, complaints, secrets } = validate(SKELETON, said, outside, desk.written);
  for (const { words, pointer, side } of complaints) desk.report(words, pointer, side);
  for (const pointer of secrets) noteSecret(valueAt(value, pointer), pointer, desk);
  checkListen(said["listen"], desk.report);
  checkProxy(said["proxy"], desk.report);
  checkAdmin(said["admin"], desk.report);
  return value as Mapping;
}

/** Puts what has come from outside as the numbers it should be. */
function checkFacts(root: Mapping, desk: MountInputs): void {
  const providers = isMapping(root["providers"]) ? root["providers"] : {};
  for (const [name, provider] of Object.entries(providers)) {
    const models = isMapping(provider) && isMapping(provider["models"]) ? provider["models"] : {};
    for (const [model, facts] of Object.entries(models)) {
      const at = below(below(below("/providers", name), "models"), model);
      const outside = (pointer: string) => desk.substituted.written.has(at + pointer);
      const checked = validate(FACTS, facts, outside, (pointer) => desk.written(at + pointer));
      models[model] = checked.value;
      for (const { words, pointer, side } of checked.complaints)
        desk.report(words, at + pointer, side);
    }
  }
}

function reporter(tree: Tree, file: string, findings: SourceFinding[]): Report {
  return (words, pointer, side, raw) => {
    const spot = locate(tree, pointer, side);
    const meant = spot && raw !== undefined ? narrowed(spot, raw) : spot;
    const at = { file: spot?.source.file ?? file, pointer };
    findings.push({ words, ...at, ...(meant ? { spot: meant } : {}) });
  };
}

/** The reference itself, where the file spells it as the value does. */
function narrowed(spot: Spot, raw: string): Spot {
  const from = spot.source.text.slice(spot.start, spot.end).indexOf(raw);
  if (from < 0) return spot;
  return { source: spot.source, start: spot.start + from, end: spot.start + from + raw.length };
}

function textAt(tree: Tree, pointer: string): string {
  const place = tree.places.get(pointer);
  return place ? place.value.source.text.slice(place.value.start, place.value.end) : "";
}

/** A pointer's own place, or that of a key of the whole file. */
function placeOf(
  tree: Tree,
  id: string,
  side: "key" | "value" = "value",
): readonly [pointer: string, side: "key" | "value"] | undefined {
  const at = id.startsWith("/") ? id : below("", id);
  return tree.places.has(at) ? [at, side] : undefined;
}
