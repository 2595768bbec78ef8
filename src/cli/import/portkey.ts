// Portkey's configs: a tree of targets, each with a strategy. A leaf is a provider, and an inner node a name of its own.
import { seconds } from "./amounts.ts";
import type { Draft, DraftRoute } from "./draft.ts";
import { isOwnServer, knownProvider, needsBase } from "./known-providers.ts";
import type { Said } from "./said.ts";

/** `name`: what clients ask for. */
export function portkey(said: Said, draft: Draft, name: string): void {
  const leaves = node(said, draft, { name, models: undefined });
  if (leaves.length > 0 && !draft.routes.has(name))
    draft.routes.set(name, { candidates: leaves.map((model) => ({ model })) });
}

interface At {
  readonly name: string;
  /** What a node above says: "gpt-5". */
  readonly models: string | undefined;
}

/** The candidates that it stands for; an inner node is a line of its own, and one candidate. */
function node(said: Said, draft: Draft, at: At): readonly string[] {
  const override = said.any("override_params", "overrideParams");
  const model = override.get("model").text() ?? at.models;
  for (const key of override.keys)
    if (key !== "model")
      override
        .get(key)
        .find(
          "manual",
          "a default of the request: a middleware with `prepare` sets it, or the client says it",
        );
  noEquals(said);
  const targets = said.get("targets").list();
  if (targets.length === 0) return leaf(said, draft, model);
  const strategy = said.get("strategy");
  const mode = strategy.get("mode").text() ?? "single";
  if (mode === "conditional") {
    strategy.find(
      "unsupported",
      "which target is asked goes by the name of a model, a key or an account here, not by conditions",
    );
    targets.forEach((each, i) => node(each, draft, { name: `${at.name}.${i + 1}`, models: model }));
    return [];
  }
  const candidates = targets.flatMap((each, i) => {
    const weight = mode === "loadbalance" ? share(each.get("weight").number()) : undefined;
    const found = node(each, draft, { name: `${at.name}.${i + 1}`, models: model });
    return found.flatMap((one) => unfolded(each, draft, { model: one, weight }));
  });
  if (candidates.length === 0) return [];
  const route: DraftRoute = {
    candidates: mode === "single" ? candidates.slice(0, 1) : merged(candidates),
    ...(mode === "loadbalance" && candidates.length > 1 && { pick: "weighted" }),
    ...onOf(strategy.any("on_status_codes", "onStatusCodes")),
  };
  draft.routes.set(at.name, route);
  return [at.name];
}

/** A node below is no candidate with a way of its own here: what stands in it stands beside the others. */
function unfolded(
  said: Said,
  draft: Draft,
  { model, weight }: { model: string; weight: number | undefined },
): DraftRoute["candidates"] {
  const inner = draft.routes.get(model);
  if (!inner) return [{ model, weight }];
  draft.routes.delete(model);
  const place = said.get("strategy").get("mode");
  if (inner.candidates.length > 1)
    place.find(
      "approximate",
      weight === undefined
        ? "these are tried as they are written, not by their shares"
        : "what falls over is asked after all that have shares",
    );
  if (weight === undefined) return inner.candidates.map((each) => ({ model: each.model }));
  const all = inner.candidates.reduce((sum, each) => sum + (each.weight ?? 0), 0);
  return inner.candidates.map((each, i) => ({
    model: each.model,
    weight: all > 0 ? Math.round((weight * (each.weight ?? 0)) / all) : i === 0 ? weight : 0,
  }));
}

const share = (weight: number | undefined): number => Math.round((weight ?? 1) * 100);

function merged(candidates: DraftRoute["candidates"]): DraftRoute["candidates"] {
  const all = new Map<string, { model: string; weight?: number | undefined }>();
  for (const { model, weight } of candidates) {
    const same = all.get(model);
    if (!same) all.set(model, { model, ...(weight !== undefined && { weight }) });
    else if (weight !== undefined) same.weight = (same.weight ?? 0) + weight;
  }
  return [...all.values()];
}

/** Any model of it, where none is said: clients name theirs as <provider>/<model>. */
function leaf(said: Said, draft: Draft, model: string | undefined): readonly string[] {
  const virtual = said.any("virtual_key", "virtualKey");
  const named = said.get("provider").text();
  const word = named?.replace(/^@/, "") ?? virtual.text();
  const base = said.any("custom_host", "customHost").text();
  const use =
    word === undefined ? undefined : (knownProvider(word) ?? knownProvider(word.split(/[-_]/)[0]!));
  if (word === undefined && base === undefined) {
    if (said.keys.length > 0) said.find("unsupported", "it names no provider");
    return [];
  }
  if (use === undefined && base === undefined) {
    said
      .any("provider", "virtual_key")
      .find("unsupported", `"${word}" is no provider that comes with the gateway`);
    return [];
  }
  if (use !== undefined && needsBase(use) && base === undefined) {
    said
      .any("provider", "virtual_key")
      .find("unsupported", `${use} needs its address (custom_host), which is not said here`);
    return [];
  }
  if (use !== undefined && (named === undefined || named.startsWith("@")))
    said
      .any("provider", "virtual_key", "virtualKey")
      .find(
        "approximate",
        `"${word}" is a name in its vault: that it is ${use} is guessed from the name`,
      );
  const own = use === undefined || (use === "openai" && base !== undefined);
  const provider = draft.provider(
    own ? "openai-compatible" : use,
    base === undefined ? {} : { base_url: base },
  );
  draft.credential(provider, keyOf(said, virtual, provider.use, draft));
  const timeout = said.any("request_timeout", "requestTimeout").number();
  if (timeout !== undefined) provider.timeouts ??= { total: seconds(timeout / 1_000) };
  said.get("weight").take();
  if (model === undefined) {
    said.find("manual", `which model is the client's to say: it asks for ${provider.name}/<model>`);
    return [];
  }
  return [`${provider.name}/${model}`];
}

function keyOf(said: Said, virtual: Said, use: string, draft: Draft): string | undefined {
  const place = said.any("api_key", "apiKey");
  const text = place.text();
  const slug = virtual.text();
  if (slug !== undefined) {
    const variable = `${slug.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_KEY`;
    virtual.find("manual", `the key that it stands for is in its vault: set ${variable}`);
    return `\${env:${variable}}`;
  }
  if (text !== undefined) {
    place.find(
      "manual",
      "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
    );
    return draft.secret(text, `${use}-key`);
  }
  return isOwnServer(use) ? undefined : `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
}

const KINDS: readonly (readonly [(status: number) => boolean, string])[] = [
  [(status) => status === 429, "rate_limited"],
  [(status) => status === 401 || status === 403, "upstream_auth"],
  [(status) => status === 402, "upstream_quota"],
  [(status) => status === 408 || status === 504, "timeout"],
  [(status) => status === 503 || status === 529, "overloaded"],
  [(status) => status >= 500, "upstream"],
];

function onOf(said: Said): { on?: readonly string[] } {
  if (!said.isThere) return {};
  const kinds = said.texts().map((text) => {
    const status = Number(text);
    return KINDS.find(([fits]) => fits(status))?.[1];
  });
  if (kinds.includes(undefined))
    said.find(
      "approximate",
      "some of these are a client's own mistakes, which no other target mends",
    );
  return { on: [...new Set(kinds.filter((kind) => kind !== undefined))] };
}

function noEquals(said: Said): void {
  const rules = [
    ["cache", "answers are not kept; a middleware may be a cache (docs/plugins/middleware.md)"],
    ["input_guardrails", "no guardrails come with the gateway"],
    ["output_guardrails", "no guardrails come with the gateway"],
    ["before_request_hooks", "no guardrails come with the gateway"],
    ["after_request_hooks", "no guardrails come with the gateway"],
    ["forward_headers", "clients' headers do not pass; a middleware may set some"],
  ] as const;
  for (const [key, message] of rules)
    if (said.get(key).isThere) said.get(key).find("unsupported", message);
  const retry = said.get("retry");
  if (retry.isThere)
    retry.find(
      "approximate",
      "`attempts` says how often one request is tried; which failures are is the gateway's to say",
    );
}
