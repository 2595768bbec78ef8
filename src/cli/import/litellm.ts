// LiteLLM's config.yaml.
import { findSteps } from "./clouds.ts";
import type { Draft, DraftRoute } from "./draft.ts";
import { isOwnServer } from "./known-providers.ts";
import { facts, kindByName, kindOf, lendPrices, type BaseModel } from "./litellm-facts.ts";
import { providerOf, variable } from "./litellm-provider.ts";
import { generalSettings, litellmSettings } from "./litellm-settings.ts";
import { routerSettings } from "./litellm-router.ts";
import type { Said } from "./said.ts";

interface Deployment {
  readonly model: string;
  readonly order: number;
  readonly weight: number | undefined;
  readonly kind: string;
}

export function litellm(said: Said, draft: Draft): void {
  const named = new Map<string, Deployment[]>();
  const bases: BaseModel[] = [];
  for (const each of said.get("model_list").list()) {
    const made = deployment(each, said, { draft, bases });
    if (made) named.set(made.name, [...(named.get(made.name) ?? []), made]);
  }
  for (const [name, deployments] of named) addRoute(name, deployments, said, draft);
  const kinds = new Map([...named].map(([name, [first]]) => [name, first!.kind]));
  routerSettings(said, draft, (name) => kinds.get(name) ?? kindByName(name));
  lendPrices(bases, draft);
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
  { draft, bases }: { readonly draft: Draft; readonly bases: BaseModel[] },
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
  const where = providerOf(asked, params, at, (place, file) => secretAt(place, file, draft));
  if (typeof where === "string") {
    params.get("model").find("unsupported", where);
    each.take();
    return undefined;
  }
  const provider = draft.provider(where.use, where.options);
  if (where.cloud && provider.credentials.length === 0) findSteps(params.get("model"), where.cloud);
  const fields = where.cloud ? where.cloud.fields : keyOf(at, where.use, draft);
  const credential = draft.credential(provider, fields);
  credential.models.add(where.model);
  const weight = weightOf(params);
  if (weight !== undefined) credential.weight ??= weight;
  const kind = kindOf(where.model, info);
  const base = facts(provider, where.model, { params, info, kind });
  if (base) bases.push(base);
  leftOver(params);
  for (const key of ["id", "description", "team_id", "tags", "access_groups"]) info.get(key).take();
  return {
    name,
    weight,
    kind,
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

/** A key as gateway.yaml has it: a variable, or a file that gets what stood in the config. */
function secretAt(place: Said, name: string, draft: Draft): string | undefined {
  const text = place.text();
  const said = variable(text);
  if (text === undefined || said !== text) return said;
  place.find(
    "manual",
    "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
  );
  return draft.secret(text, name);
}

function keyOf(at: Said, use: string, draft: Draft): string | undefined {
  const place = at.get("api_key");
  const text = place.text();
  if (text === undefined)
    return isOwnServer(use)
      ? undefined
      : `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
  // Servers of one's own are given some word in place of a key.
  return isOwnServer(use) && text.length < 8 ? undefined : secretAt(place, `${use}-key`, draft);
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
