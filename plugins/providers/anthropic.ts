// Anthropic: the messages protocol, token counting, and the live model list.
import {
  apiKeySchema,
  defineProvider,
  type Call,
  type JsonObject,
  type ProviderClient,
  type ModelInfo,
  type Outgoing,
  type Facts,
} from "tollgate/plugin";
import {
  asPositiveCount,
  asObject,
  fetchListPage,
  asNonEmptyText,
} from "tollgate/protocols/compatible";
import { claude, filterBetas, messages } from "tollgate/protocols/messages";
import { messageBatches } from "./anthropic/batches.ts";

// Metadata of Claude models, except prices.

const SAMPLING = ["temperature", "top_p", "top_k"];

type More = Omit<Partial<ModelInfo>, "model" | "name" | "operation" | "limits">;

const model = (
  model: string,
  name: string,
  [context, output]: readonly [number, number],
  more: More = {},
): ModelInfo => ({
  model,
  name,
  operation: "chat",
  protocols: ["messages"],
  limits: { context, output },
  ...more,
  can: { tools: true, vision: true, reasoning: true, stream: true, system: true, ...more.can },
});

const SMALL_LIMITS = [200_000, 64_000] as const;
const LARGE_LIMITS = [1_000_000, 128_000] as const;
const OLDER_MODELS = { can: { documents: true, json_schema: true } };
const NEWER_MODELS = { rejectedFields: SAMPLING };

/**
 * These models are served only to organizations that allow Anthropic to retain their data for 30
 * days.
 */
const RETAINED_MODELS = {
  dataPolicy: { retention: { kind: "days", days: 30 }, requires: "unavailable" },
} as const;

const facts: Facts = {
  asOf: "2026-11-10",
  models: [
    model("claude-fable-5-2", "Claude Fable 5.2", LARGE_LIMITS, NEWER_MODELS),
    model("claude-fable-5-1", "Claude Fable 5.1", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...RETAINED_MODELS,
    }),
    model("claude-fable-5", "Claude Fable 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      ...RETAINED_MODELS,
      released: "2026-06-09",
    }),
    model("claude-opus-5-5", "Claude Opus 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-opus-5", "Claude Opus 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      can: { json_schema: true },
    }),
    model("claude-opus-4-8", "Claude Opus 4.8", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-05-28",
    }),
    model("claude-opus-4-7", "Claude Opus 4.7", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-04-16",
    }),
    model("claude-opus-4-6", "Claude Opus 4.6", LARGE_LIMITS, {
      ...OLDER_MODELS,
      released: "2026-02-05",
    }),
    model("claude-opus-4-5", "Claude Opus 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-11-24",
    }),
    model("claude-sonnet-5-5", "Claude Sonnet 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-sonnet-5", "Claude Sonnet 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-06-30",
    }),
    model("claude-sonnet-4-6", "Claude Sonnet 4.6", LARGE_LIMITS, {
      ...OLDER_MODELS,
      released: "2026-02-17",
    }),
    model("claude-sonnet-4-5", "Claude Sonnet 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-09-29",
      retires: "2026-11-30",
    }),
    model("claude-haiku-5-5", "Claude Haiku 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-haiku-4-5", "Claude Haiku 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-10-15",
    }),
  ],
};

const VERSION = "2023-06-01";

export default defineProvider({
  api: 1,
  name: "anthropic",
  summary: "Anthropic",
  stability: "beta",
  credential: apiKeySchema,
  facts,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://api.anthropic.com",
        description: "Base URL of the API, with or without /v1",
      },
      version: {
        type: "string",
        pattern: "^\\d{4}-\\d{2}-\\d{2}$",
        "x-expects": "a date such as 2023-06-01",
        default: VERSION,
        description:
          "anthropic-version for translated requests and for requests that do not set it",
      },
      betas: {
        type: "array",
        items: { type: "string", minLength: 1 },
        description: "Allowed anthropic-beta values. Default: all",
      },
    },
  },
  setup: ({ base_url, version, betas }) => ({
    endpoints: [
      {
        protocol: messages(claude),
        base: withVersion(base_url),
        auth: { header: "x-api-key", field: "api_key" },
        headers: { "anthropic-version": version },
        batches: messageBatches(version),
        prepare(out, call) {
          forwardClientVersion(out, call);
          if (betas) filterBetas(out, call, (beta) => betas.includes(beta));
        },
      },
    ],
    listModels: (line) => fetchModelList(line, version),
  }),
});

/** Adds the API version to a base URL without one, because users write the URL in both ways. */
const withVersion = (base: string): string => {
  const bare = base.replace(/\/+$/, "");
  return /\/v\d+$/.test(bare) ? bare : `${bare}/v1`;
};

/**
 * Forwards the API version that a client of the messages protocol requested, so that the response
 * has that version. The client's header may be named after another vendor, and translated mode does
 * not forward client headers.
 */
function forwardClientVersion(out: Outgoing, call: Call): void {
  const { exchange } = call;
  if (exchange.protocol !== "messages") return;
  for (const name in exchange.headers) {
    const value = exchange.headers[name];
    if (typeof value !== "string") continue;
    if (/^[a-z][a-z0-9]*-version$/.test(name) && /^\d{4}-\d{2}-\d{2}$/.test(value))
      out.setHeader("anthropic-version", value);
    else if (name === "anthropic-beta") out.setHeader(name, value);
  }
}

/** Maximum number of pages of a model list. */
const MAX_PAGES = 20;

async function fetchModelList(line: ProviderClient, version: string): Promise<ModelInfo[]> {
  const models: ModelInfo[] = [];
  let after = "";
  for (let turn = 0; turn < MAX_PAGES; turn++) {
    const { rows, otherFields } = await fetchListPage(line, `models?limit=1000${after}`, {
      fields: ["data"],
      headers: { "anthropic-version": version },
    });
    for (const row of rows) if (row["lifecycle"] !== "retired") models.push(...infoOf(row));
    const last = asNonEmptyText(otherFields["last_id"]);
    if (!otherFields["has_more"] || last === undefined) break;
    after = `&after_id=${encodeURIComponent(last)}`;
  }
  return models;
}

function infoOf(row: JsonObject): readonly ModelInfo[] {
  const model = asNonEmptyText(row["id"]);
  if (model === undefined) return [];
  const can = asObject(row["capabilities"]);
  const able = (name: string): boolean | undefined => {
    const isSupported = asObject(can?.[name])?.["supported"];
    return typeof isSupported === "boolean" ? isSupported : undefined;
  };
  return [
    {
      model,
      operation: "chat",
      name: asNonEmptyText(row["display_name"]),
      can: {
        vision: able("image_input"),
        documents: able("pdf_input"),
        json_schema: able("structured_outputs"),
        reasoning: able("thinking"),
      },
      limits: {
        input: asPositiveCount(row["max_input_tokens"]),
        output: asPositiveCount(row["max_tokens"]),
      },
      released: releaseDate(asNonEmptyText(row["created_at"])),
      retires: releaseDate(asNonEmptyText(row["retires_at"])),
    },
  ];
}

/** Anthropic returns the epoch if a model's release date is unknown. */
const releaseDate = (time: string | undefined): string | undefined =>
  time && !time.startsWith("1970") ? time.slice(0, 10) : undefined;
