// Imports LiteLLM's config.yaml.
import { reportManualSteps } from "./clouds.ts";
import type { ConfigDraft, DraftRoute, Importer } from "./config-draft.ts";
import type { ImportedKey } from "./key-export.ts";
import { isSelfHosted } from "./known-providers.ts";
import {
  importMetadata,
  operationByName,
  operationOf,
  referencePrices,
  type BaseModel,
  importLitellmProvider,
  toVariable,
} from "./litellm-model-metadata.ts";
import {
  importGeneralSettings,
  importLitellmSettings,
  importRouterSettings,
} from "./litellm-router.ts";
import type { SourceValue } from "./source-value.ts";

interface Deployment {
  readonly model: string;
  readonly order: number;
  readonly weight: number | undefined;
  readonly kind: string;
}

export const litellm: Importer = {
  name: "litellm",
  importConfig: importLitellm,
};

function importLitellm(source: SourceValue, draft: ConfigDraft): readonly ImportedKey[] {
  const named = new Map<string, Deployment[]>();
  const bases: BaseModel[] = [];
  for (const each of source.get("model_list").readList()) {
    const made = importDeployment(each, source, { draft, bases });
    if (made) named.set(made.name, [...(named.get(made.name) ?? []), made]);
  }
  for (const [name, deployments] of named) addRoute(name, deployments, source, draft);
  const kinds = new Map([...named].map(([name, [first]]) => [name, first!.kind]));
  importRouterSettings(source, draft, (name) => kinds.get(name) ?? operationByName(name));
  referencePrices(bases, draft);
  importLitellmSettings(source.get("litellm_settings"), draft);
  importGeneralSettings(source.get("general_settings"));
  const variables = source.get("environment_variables");
  if (variables.exists)
    variables.report(
      "manual",
      "set these variables in the gateway's environment: a config should not contain them",
    );
  if (source.get("include").exists)
    source
      .get("include")
      .report("manual", "also import the files that it names, and merge the results");
  if (source.get("guardrails").exists)
    source
      .get("guardrails")
      .report(
        "unsupported",
        "guardrails are not built in; a middleware can be one (docs/plugins/middleware.md)",
      );
  mergeEqualCredentials(draft);
  // LiteLLM stores its keys in a database: see key-export.ts.
  return [];
}

function importDeployment(
  each: SourceValue,
  root: SourceValue,
  { draft, bases }: { readonly draft: ConfigDraft; readonly bases: BaseModel[] },
): (Deployment & { readonly name: string }) | undefined {
  const params = each.get("litellm_params");
  const info = each.get("model_info");
  const name = each.get("model_name").readText();
  const litellmModel = params.get("model").readText();
  if (name === undefined || litellmModel === undefined) {
    each.report("unsupported", "model_name or litellm_params.model is missing");
    return undefined;
  }
  const at = credentialSource(params, root);
  const where = importLitellmProvider(litellmModel, params, at, {
    draft,
    secret: (place, file) => importSecret(place, file, draft),
  });
  if (typeof where === "string") {
    params.get("model").report("unsupported", where);
    each.readValue();
    return undefined;
  }
  const provider = draft.provider(where.use, where.options);
  if (where.cloud && provider.credentials.length === 0)
    reportManualSteps(params.get("model"), where.cloud);
  const fields = where.cloud ? where.cloud.fields : importKey(at, where.use, draft);
  const credential = draft.credential(provider, fields);
  credential.models.add(where.model);
  const weight = readWeight(params);
  if (weight !== undefined) credential.weight ??= weight;
  const kind = operationOf(where.model, info);
  const base = importMetadata(provider, where.model, { params, info, kind });
  if (base) bases.push(base);
  reportUnread(params);
  for (const key of ["id", "description", "team_id", "tags", "access_groups"])
    info.get(key).readValue();
  return {
    name,
    weight,
    kind,
    order: params.get("order").readNumber() ?? 0,
    model: `${provider.name}/${where.model}`,
  };
}

/** Returns the parameters themselves, or the credential that they name. */
function credentialSource(params: SourceValue, root: SourceValue): SourceValue {
  const name = params.get("litellm_credential_name").readText();
  const found = root
    .get("credential_list")
    .readList()
    .find((each) => each.get("credential_name").readText() === name);
  if (name === undefined || !found) return params;
  found.get("credential_info").readValue();
  return found.get("credential_values");
}

/**
 * Returns a key for gateway.yaml: a reference to a variable, or to a new file that contains the
 * literal key.
 */
function importSecret(place: SourceValue, name: string, draft: ConfigDraft): string | undefined {
  const text = place.readText();
  const reference = toVariable(text);
  if (text === undefined || reference !== text) return reference;
  place.report(
    "manual",
    "the config contained a key; it is now in a separate file (mode 0600) and should " +
      "be replaced",
  );
  return draft.secret(text, name);
}

function importKey(at: SourceValue, use: string, draft: ConfigDraft): string | undefined {
  const place = at.get("api_key");
  const text = place.readText();
  if (text === undefined)
    return isSelfHosted(use)
      ? undefined
      : `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
  // Self-hosted servers are often configured with a placeholder instead of a key.
  return isSelfHosted(use) && text.length < 8
    ? undefined
    : importSecret(place, `${use}-key`, draft);
}

function readWeight(params: SourceValue): number | undefined {
  const weight = params.get("weight").readNumber();
  const rates = ["rpm", "tpm"].map((key) => params.get(key));
  const there = rates.filter(({ exists }) => exists);
  for (const each of there)
    each.report(
      weight === undefined ? "approximate" : "unsupported",
      weight === undefined
        ? "used as its share; the gateway reads provider limits from responses and does " +
            "not count requests against them"
        : "the gateway reads provider limits from responses and does not count requests " +
            "against them",
    );
  const share = weight ?? there.map((each) => each.readNumber()).find((n) => n !== undefined);
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

/**
 * Reports parameters that no rule has read: settings that belong to the gateway, or default values
 * of a request.
 */
function reportUnread(params: SourceValue): void {
  if (params.get("max_retries").exists)
    params
      .get("max_retries")
      .report("approximate", "retries follow the gateway's own rules: `attempts`");
  if (params.get("drop_params").exists)
    params
      .get("drop_params")
      .report(
        "exact",
        "fields that a model does not support are dropped and listed in a header; " +
          "`strict: true` rejects them",
      );
  if (params.get("organization").exists)
    params
      .get("organization")
      .report("manual", "a project key determines its organization; the header is not sent");
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
    if (params.get(key).exists)
      params
        .get(key)
        .report(
          "manual",
          "a request default: set it with a middleware that has `prepare` " +
            "(docs/plugins/middleware.md), or in the client",
        );
}

function addRoute(
  name: string,
  deployments: readonly Deployment[],
  root: SourceValue,
  draft: ConfigDraft,
): void {
  const place = root.get("model_list");
  if (name.split("*").length > 2 || deployments.some(({ model }) => model.split("*").length > 2)) {
    place
      .readList()
      .find((each) => each.get("model_name").value === name)!
      .report("manual", "a name can contain only one star");
    return;
  }
  const ordered = [...deployments].sort((a, b) => a.order - b.order);
  const candidates: DraftRoute["candidates"] = [];
  for (const { model, weight } of ordered) {
    const same = candidates.find((each) => each.model === model);
    if (!same) candidates.push({ model, weight });
    else if (weight !== undefined) same.weight = (same.weight ?? 0) + weight;
  }
  // A provider's own model names need no route.
  if (candidates.length === 1 && candidates[0]!.model === name) return;
  const others = candidates.filter(({ model }) => model !== name);
  if (others.length < candidates.length)
    place.report(
      "approximate",
      `"${name}" is a provider's own name, so requests for it reach only that provider`,
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

/** Removes the model lists of a provider's credentials if all credentials allow the same models. */
function mergeEqualCredentials(draft: ConfigDraft): void {
  for (const { credentials } of draft.providers.values()) {
    const sets = credentials.map(({ models }) => [...models].sort().join("\n"));
    if (new Set(sets).size <= 1) for (const { models } of credentials) models.clear();
  }
}
