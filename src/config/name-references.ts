// Checks names that refer to other names: references from models to providers and to other models,
// and from a middleware's `for` to mounted plugins. It reads the raw config in all its forms, so
// that an error elsewhere does not hide these errors.
import type { PluginMount } from "./mount-plugins.ts";
import { problem } from "./problems.ts";
import type { ReportProblem } from "./source/substitute-references.ts";
import { childPointer, isMapping, type Mapping } from "./source/config-tree.ts";

export interface DeclaredNames {
  /** All keys under `providers:`. */
  readonly providers: readonly string[];
  readonly unmountedProviders: ReadonlyMap<string, string>;
  /** Providers with `credential: client`. */
  readonly clientProviders: readonly string[];
}

/** A candidate with its position. */
export interface NameReference {
  readonly name: string;
  readonly pointer: string;
  readonly weight?: number | undefined;
}

export const textReferences = (list: unknown, pointer: string): NameReference[] =>
  (Array.isArray(list) ? list : []).flatMap((name: unknown, i) =>
    typeof name === "string" ? [{ name, pointer: childPointer(pointer, i) }] : [],
  );

/** Returns the candidates of an entry of `models:`, which has three forms. */
export function candidateReferences(raw: unknown, pointer: string): NameReference[] {
  if (typeof raw === "string") return [{ name: raw, pointer }];
  if (!isMapping(raw)) return textReferences(raw, pointer);
  const { candidates } = raw;
  const at = childPointer(pointer, "candidates");
  return (Array.isArray(candidates) ? candidates : []).flatMap(
    (one: unknown, i): NameReference[] => {
      if (typeof one === "string") return [{ name: one, pointer: childPointer(at, i) }];
      if (!isMapping(one) || typeof one["model"] !== "string") return [];
      const weight = typeof one["weight"] === "number" ? one["weight"] : undefined;
      return [{ name: one["model"], pointer: childPointer(childPointer(at, i), "model"), weight }];
    },
  );
}

export const providerNameOf = (model: string): string =>
  model.slice(0, Math.max(0, model.indexOf("/")));

/** Returns the longest pattern that matches. A pattern contains one `*`. */
export function findPattern(name: string, patterns: Iterable<string>): string | undefined {
  let longest: string | undefined;
  for (const pattern of patterns) {
    const star = pattern.indexOf("*");
    if (star < 0 || name.length < pattern.length - 1) continue;
    const fits = name.startsWith(pattern.slice(0, star)) && name.endsWith(pattern.slice(star + 1));
    if (fits && pattern.length > (longest?.length ?? 0)) longest = pattern;
  }
  return longest;
}

export function checkModels(models: Mapping, names: DeclaredNames, report: ReportProblem): void {
  const keys = Object.keys(models);
  const leads = new Map<string, NameReference[]>();
  const folded = new Map<string, string>();
  for (const key of keys) {
    const at = childPointer("/models", key);
    const peer = folded.get(normalizeName(key));
    if (peer !== undefined) report(problem.confusableNames(key, peer), at, "key");
    folded.set(normalizeName(key), key);
    checkWeights(models[key], at, report);
    const first = providerNameOf(key);
    const mounted = names.providers.includes(first) && !names.unmountedProviders.has(first);
    if (key.includes("*") && mounted) report(problem.unreachableModel(first), at, "key");
    leads.set(key, checkCandidates(key, candidateReferences(models[key], at), keys, names, report));
  }
  checkClientProviders(models, leads, names, report);
  for (const circle of findCycles(leads)) report(problem.aliasCycle(circle.path), circle.pointer);
}

/**
 * Reports a model with two providers that are called with the client's own credential. A request
 * has one such credential, and only its own provider may receive it.
 */
function checkClientProviders(
  models: Mapping,
  aliases: ReadonlyMap<string, readonly NameReference[]>,
  { clientProviders }: DeclaredNames,
  report: ReportProblem,
): void {
  if (clientProviders.length < 2) return;
  const listFor = (key: string): NameReference[] =>
    candidateReferences(models[key], childPointer("/models", key)).flatMap(({ name, pointer }) => {
      const alias = aliases.get(key)?.find((one) => one.pointer === pointer)?.name;
      const provider = alias === undefined ? providerNameOf(name) : firstOf(alias);
      return provider !== undefined && clientProviders.includes(provider)
        ? [{ name: provider, pointer }]
        : [];
    });
  // Further providers of an alias are reported where the alias is defined.
  const firsts = new Map<string, string | undefined>();
  const firstOf = (alias: string): string | undefined => {
    if (!firsts.has(alias)) {
      // A circle of aliases, which is reported separately, ends here.
      firsts.set(alias, undefined);
      firsts.set(alias, listFor(alias)[0]?.name);
    }
    return firsts.get(alias);
  };
  for (const key of aliases.keys()) {
    const [first, ...others] = listFor(key);
    const other = others.find(({ name }) => name !== first!.name);
    if (other) report(problem.twoClientProviders(first!.name, other.name), other.pointer);
  }
}

/** Reports weights that the strategy in `pick` does not use. */
function checkWeights(raw: unknown, at: string, report: ReportProblem): void {
  if (!isMapping(raw) || raw["pick"] === "weighted" || raw["pick"] === "sticky") return;
  const { pick = "ordered", candidates } = raw;
  for (const [i, one] of (Array.isArray(candidates) ? candidates : []).entries())
    if (isMapping(one) && one["weight"] !== undefined && typeof pick === "string")
      report(
        problem.unusedWeight(pick),
        childPointer(childPointer(childPointer(at, "candidates"), i), "weight"),
      );
}

/**
 * Checks candidates. Returns the candidates that are names under `models:`, each with the key that
 * it refers to.
 */
function checkCandidates(
  key: string,
  candidates: readonly NameReference[],
  keys: readonly string[],
  { providers, unmountedProviders }: DeclaredNames,
  report: ReportProblem,
): NameReference[] {
  const aliases: NameReference[] = [];
  const skipped: [NameReference, string][] = [];
  for (const candidate of candidates) {
    const { name, pointer } = candidate;
    const provider = providerNameOf(name);
    if (name.split("*").length > 2) report(problem.multipleStars(name), pointer);
    else if (name.includes("*") && !key.includes("*"))
      report(problem.starWithoutMatch(name), pointer);
    if (keys.includes(name)) aliases.push({ name, pointer });
    else if (unmountedProviders.has(provider)) skipped.push([candidate, provider]);
    else if (!providers.includes(provider)) {
      const pattern = findPattern(name, keys);
      if (pattern !== undefined) aliases.push({ name: pattern, pointer });
      else if (provider !== "") report(problem.unknownProvider(provider, providers), pointer);
      else
        report(
          problem.unknownModel(
            name,
            keys.filter((each) => each !== key),
          ),
          pointer,
        );
    }
  }
  if (skipped.length > 0 && skipped.length === candidates.length) {
    const reasons = [...new Set(skipped.map(([, provider]) => provider))];
    const why = reasons.map(
      (provider) => `provider ${provider} is not mounted: ${unmountedProviders.get(provider)}`,
    );
    report(problem.unmountedModel(why.join("; ")), childPointer("/models", key), "key");
  } else
    for (const [{ pointer }, provider] of skipped)
      report(problem.unmountedCandidate(provider, unmountedProviders.get(provider)!), pointer);
  return aliases;
}

const normalizeName = (name: string): string => name.normalize("NFKC").toLowerCase();

/** Returns each cycle once, at the name that closes it. */
export function findCycles(references: ReadonlyMap<string, readonly NameReference[]>) {
  const found: { path: string[]; pointer: string }[] = [];
  const done = new Set<string>();
  const exchange = (key: string, path: readonly string[]) => {
    for (const { name, pointer } of references.get(key) ?? []) {
      const from = path.indexOf(name);
      if (from >= 0) found.push({ path: [...path.slice(from), name], pointer });
      else if (!done.has(name)) exchange(name, [...path, name]);
    }
    done.add(key);
  };
  for (const key of references.keys()) if (!done.has(key)) exchange(key, [key]);
  return found;
}

export function checkMiddleware(
  list: unknown,
  mounts: readonly PluginMount[],
  names: DeclaredNames,
  report: ReportProblem,
): void {
  if (!Array.isArray(list)) return;
  const frontends = mounts.filter((m) => m.kind === "frontend").map((m) => m.definition.name);
  for (const [i, each] of list.entries()) {
    const where = isMapping(each) && isMapping(each["for"]) ? each["for"] : {};
    const at = `/middleware/${i}/for`;
    for (const { name, pointer } of textReferences(where["providers"], `${at}/providers`))
      if (!names.providers.includes(name))
        report(problem.unknownProvider(name, names.providers), pointer);
    for (const { name, pointer } of textReferences(where["frontends"], `${at}/frontends`))
      if (!frontends.includes(name)) report(problem.unknownFrontend(name, frontends), pointer);
  }
}
