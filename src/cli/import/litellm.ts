// LiteLLM's config.yaml.
import { priceIn, seconds } from "./amounts.ts";
import type { Draft, DraftProvider, DraftRoute } from "./draft.ts";
import { isOwnServer } from "./known-providers.ts";
import { providerOf, variable } from "./litellm-provider.ts";
import { generalSettings, litellmSettings } from "./litellm-settings.ts";
import { routerSettings } from "./litellm-router.ts";
import type { Said } from "./said.ts";

interface Deployment {
  readonly model: string;
  readonly order: number;
  readonly weight: number | undefined;
}

export function litellm(said: Said, draft: Draft): void {
  const named = new Map<string, Deployment[]>();
  for (const each of said.get("model_list").list()) {
    const made = deployment(each, said, draft);
    if (made) named.set(made.name, [...(named.get(made.name) ?? []), made]);
  }
  for (const [name, deployments] of named) addRoute(name, deployments, said, draft);
  routerSettings(said, draft);
  litellmSettings(said.get("litellm_settings"), draft);
  generalSettings(said.get("general_settings"));
  const variables = said.get("environment_variables");
  if (variables.isThere)
    variables.find(
      "manual",
      "set these variables where the gateway runs: a config is no place for them",
    );
  if (said.get("include").isThere)
    said
      .get("include")
      .find("manual", "import the files that it names too, and join what comes of them");
  if (said.get("guardrails").isThere)
    said
      .get("guardrails")
      .find(
        "unsupported",
        "no guardrails come with the gateway; a middleware may be one (docs/plugins/middleware.md)",
      );
  evenCredentials(draft);
}

function deployment(
  each: Said,
  root: Said,
  draft: Draft,
): (Deployment & { readonly name: string }) | undefined {
  const params = each.get("litellm_params");
  const info = each.get("model_info");
  const name = each.get("model_name").text();
  const asked = params.get("model").text();
  if (name === undefined || asked === undefined) {
    each.find("unsupported", "it has no model_name, or no litellm_params.model");
    return undefined;
  }
  const at = credentialOf(params, root);
  const where = providerOf(asked, params, at);
  if (typeof where === "string") {
    params.get("model").find("unsupported", where);
    return undefined;
  }
  const provider = draft.provider(where.use, where.options);
  const credential = draft.credential(provider, keyOf(at, where.use, draft));
  credential.models.add(where.model);
  const weight = weightOf(params);
  if (weight !== undefined) credential.weight ??= weight;
  facts(provider, where.model, params, info);
  leftOver(params);
  for (const key of ["id", "mode", "base_model", "max_tokens", "max_input_tokens"])
    info.get(key).take();
  for (const key of ["description", "team_id", "tags", "access_groups"]) info.get(key).take();
  return {
    name,
    weight,
    order: params.get("order").number() ?? 0,
    model: `${provider.name}/${where.model}`,
  };
}

/** The parameters themselves, or the credential that they name. */
function credentialOf(params: Said, root: Said): Said {
  const name = params.get("litellm_credential_name").text();
  const found = root
    .get("credential_list")
    .list()
    .find((each) => each.get("credential_name").text() === name);
  if (name === undefined || !found) return params;
  found.get("credential_info").take();
  return found.get("credential_values");
}

function keyOf(at: Said, use: string, draft: Draft): string | undefined {
  const place = at.get("api_key");
  const text = place.text();
  if (text === undefined) {
    if (isOwnServer(use)) return undefined;
    return `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
  }
  const said = variable(text)!;
  if (said !== text || (isOwnServer(use) && text.length < 8))
    return said === text ? undefined : said;
  place.find(
    "manual",
    "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
  );
  return draft.secret(text, `${use}-key`);
}

function weightOf(params: Said): number | undefined {
  const weight = params.get("weight").number();
  const rates = ["rpm", "tpm"].map((key) => params.get(key));
  const there = rates.filter(({ isThere }) => isThere);
  for (const each of there)
    each.find(
      weight === undefined ? "approximate" : "unsupported",
      weight === undefined
        ? "taken as its share; a provider's own limit is heard from its answers, and nothing is counted on the way up"
        : "a provider's own limit is heard from its answers, and nothing is counted on the way up",
    );
  const share = weight ?? there.map((each) => each.number()).find((n) => n !== undefined);
  return share === undefined
    ? undefined
    : Math.min(
        1_000_000,
        Math.max(
          0,
          Math.round(weight === undefined ? share : share * (Number.isInteger(share) ? 1 : 100)),
        ),
      );
}

function facts(provider: DraftProvider, model: string, params: Said, info: Said): void {
  const price = priceIn(params, info);
  if (price !== undefined) provider.facts.set(model, { ...provider.facts.get(model), price });
  const [timeout, stream] = [params.get("timeout").number(), params.get("stream_timeout").number()];
  if (timeout !== undefined || stream !== undefined)
    provider.timeouts ??= {
      ...(stream !== undefined && { first_byte: seconds(stream) }),
      ...(timeout !== undefined && { total: seconds(timeout) }),
    };
}

/** What is left of the parameters is the gateway's to do, or a default of the request. */
function leftOver(params: Said): void {
  if (params.get("max_retries").isThere)
    params
      .get("max_retries")
      .find("approximate", "the gateway tries again by its own rules: `attempts`");
  if (params.get("drop_params").isThere)
    params
      .get("drop_params")
      .find(
        "exact",
        "what a model does not know is left out and named in a header; `strict: true` refuses it",
      );
  if (params.get("organization").isThere)
    params
      .get("organization")
      .find("manual", "a key of a project says its organisation; the header is not sent");
  const defaults = [
    "temperature",
    "top_p",
    "max_tokens",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "extra_headers",
    "extra_body",
    "reasoning_effort",
  ];
  for (const key of defaults)
    if (params.get(key).isThere)
      params
        .get(key)
        .find(
          "manual",
          "a default of the request: a middleware with `prepare` sets it (docs/plugins/middleware.md), or the client says it",
        );
}

function addRoute(
  name: string,
  deployments: readonly Deployment[],
  said: Said,
  draft: Draft,
): void {
  const place = said.get("model_list");
  if (name.split("*").length > 2 || deployments.some(({ model }) => model.split("*").length > 2)) {
    place
      .list()
      .find((each) => each.get("model_name").value === name)!
      .find("manual", "a name has one star at most here");
    return;
  }
  const ordered = [...deployments].sort((a, b) => a.order - b.order);
  const candidates: DraftRoute["candidates"] = [];
  for (const { model, weight } of ordered) {
    const same = candidates.find((each) => each.model === model);
    if (!same) candidates.push({ model, weight });
    else if (weight !== undefined) same.weight = (same.weight ?? 0) + weight;
  }
  // A provider's own names need no line.
  if (candidates.length === 1 && candidates[0]!.model === name) return;
  const others = candidates.filter(({ model }) => model !== name);
  if (others.length < candidates.length)
    place.find(
      "approximate",
      `"${name}" is a provider's own name here, so clients that ask for it reach that one alone`,
    );
  else if (others.length === 1)
    draft.routes.set(name, { candidates: [{ model: others[0]!.model }] });
  else {
    const isOrdered = new Set(deployments.map(({ order }) => order)).size > 1;
    const even = others.every(({ weight }) => weight === undefined);
    draft.routes.set(name, {
      candidates:
        isOrdered || even
          ? others.map(({ model }) => ({ model, ...(!isOrdered && { weight: 1 }) }))
          : others,
      pick: isOrdered ? "ordered" : "weighted",
    });
  }
}

/** Credentials that may all do the same say nothing of models. */
function evenCredentials(draft: Draft): void {
  for (const { credentials } of draft.providers.values()) {
    const sets = credentials.map(({ models }) => [...models].sort().join("\n"));
    if (new Set(sets).size <= 1) for (const { models } of credentials) models.clear();
  }
}
