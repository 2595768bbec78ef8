// Which provider of ours a deployment of LiteLLM asks, and where.
import { guessedProvider, isOwnServer, knownProvider, needsBase } from "./known-providers.ts";
import type { Said } from "./said.ts";

const BASES = ["api_base", "base_url"] as const;

interface Where {
  readonly use: string;
  readonly model: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Which provider of ours it is, or why none. */
export function providerOf(asked: string, params: Said, at: Said): Where | string {
  const custom = params.get("custom_llm_provider").text();
  const slash = asked.indexOf("/");
  const known = slash < 0 ? undefined : knownProvider(asked.slice(0, slash));
  const word = custom ?? (slash < 0 ? guessedProvider(asked) : asked.slice(0, slash));
  const model = slash < 0 || (custom !== undefined && !known) ? asked : asked.slice(slash + 1);
  const base = [...BASES]
    .map((key) => variable((at.get(key).isThere ? at : params).get(key).text()))
    .find(Boolean);
  const version = params.get("api_version").text();
  const use = word === undefined ? undefined : knownProvider(word);
  if (use === "azure") return azure(model, base, version, params);
  if (use === "bedrock") return bedrock(model, base, params);
  // An address of one's own behind a vendor's word is a server that speaks like that vendor.
  if (base !== undefined && (use === "openai" || use === undefined || isOwnServer(use)))
    return {
      use: use && isOwnServer(use) ? use : "openai-compatible",
      model,
      options: { base_url: base },
    };
  if (use === undefined)
    return word === undefined
      ? `which provider has "${asked}" is not said`
      : `"${word}" is no provider that comes with the gateway; if it speaks chat completions, openai-compatible with its base_url reaches it`;
  if (needsBase(use) && base === undefined)
    return `${use} needs its address (api_base), which is not said here`;
  return { use, model, options: base === undefined ? {} : { base_url: base } };
}

function azure(
  model: string,
  base: string | undefined,
  version: string | undefined,
  params: Said,
): Where | string {
  if (base === undefined) return "azure needs the address of its resource (api_base)";
  if (version !== undefined)
    params.get("api_version").find("exact", "not needed: the gateway asks Azure's v1 API");
  const root = base.replace(/\/+$/, "").replace(/\/openai(\/.*)?$/, "");
  return { use: "azure", model, options: { base_url: `${root}/openai/v1` } };
}

function bedrock(model: string, base: string | undefined, params: Said): Where {
  const region = variable(params.any("aws_region_name", "region_name").text()) ?? "us-east-1";
  for (const key of [
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_role_name",
    "aws_profile_name",
    "aws_session_name",
  ])
    if (params.get(key).isThere)
      params
        .get(key)
        .find(
          "manual",
          "Bedrock is asked with an API key here: make one in the console, and set BEDROCK_API_KEY",
        );
  const options = { base_url: base ?? `https://bedrock-runtime.${region}.amazonaws.com/openai/v1` };
  return { use: "bedrock", model: model.replace(/^(converse|invoke)\//, ""), options };
}

/** `os.environ/NAME` as we write it; what is written out stays. */
export const variable = (text: string | undefined): string | undefined =>
  text?.replace(/^os\.environ\/(\w+)$/, (_, name: string) => `\${env:${name}}`);
