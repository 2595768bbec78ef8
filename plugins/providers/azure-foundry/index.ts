// Azure AI Foundry, formerly Azure OpenAI: the deployments of a resource through OpenAI's
// protocols, and Claude through Anthropic's.
import {
  defineProvider,
  type Auth,
  type CallContext,
  type ProtocolEndpoint,
  fail,
  type ClientHalf,
  type Fault,
  type JsonObject,
  type Operation,
  type Protocol,
} from "tollgate/plugin";
import { setTimeout as sleep } from "node:timers/promises";
import { accountSchema, foundryAuth, ENV_VARIABLES, type AzureAccount } from "./auth.ts";
import { openAiBatches, type BatchDialect } from "tollgate/protocols/batches";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { embeddings } from "tollgate/protocols/embeddings";
import { claude, messages } from "tollgate/protocols/messages";
import { realtime, realtimePath } from "tollgate/protocols/realtime";
import { openAiBackground, responses } from "tollgate/protocols/responses";
import { asObject } from "tollgate/protocols/compatible";

const COGNITIVE = "https://cognitiveservices.azure.com/.default";
const FOUNDRY = "https://ai.azure.com/.default";

export default defineProvider({
  api: 1,
  name: "azure-foundry",
  summary: "Azure AI Foundry: OpenAI-compatible deployments, and Claude",
  stability: "beta",
  unverified: ["managed identity", "Foundry's scope"],
  credential: accountSchema,
  needs: {
    env: ENV_VARIABLES,
    metadata: true,
    origins: (_options, env) => [env("IDENTITY_ENDPOINT") ?? "http://169.254.169.254"],
    files: ({ federated_token_file }) => [federated_token_file],
  },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      resource: {
        type: "string",
        pattern: "^[a-zA-Z0-9-]+$",
        "x-expects": "the name of a resource",
        description: "Name of the resource, the first part of its host names",
      },
      base_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description:
          "Base URL of the resource, without /openai. Default: https://<resource>.openai.azure.com",
      },
      claude_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description:
          "Base URL of the Claude API, without /anthropic. Default: https://<resource>.services.ai.azure.com",
      },
      claude: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: ["claude-*"],
        description: "Deployments of Claude. Each name can contain one *, which matches any text",
      },
      batch_deployments: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description:
          "Deployments of the type Global Batch or Data Zone Batch, which run batches only. Each " +
          "name can contain one *, which matches any text. Batches require v1, so api_version " +
          "must be unset",
      },
      api_version: {
        type: "string",
        pattern: "^\\d{4}-\\d{2}-\\d{2}(-preview)?$",
        "x-expects": "a version such as 2024-10-21",
        description: "API version for calls at /openai/deployments. If unset, calls use /openai/v1",
      },
      federated_token_file: {
        type: "string",
        minLength: 1,
        default: "/var/run/secrets/azure/tokens/azure-identity-token",
        description: "Token file of a federated workload. The file is read for each token request",
      },
      login_url: {
        type: "string",
        minLength: 1,
        default: "https://login.microsoftonline.com",
        "x-origin": true,
        description: "URL of Entra ID, which issues the tokens",
      },
    },
  },
  *check({ resource, base_url, api_version, batch_deployments }) {
    if (resource === undefined && base_url === undefined)
      yield { path: "", message: "requires resource or base_url" };
    if (api_version !== undefined && batch_deployments.length > 0)
      yield { path: "/batch_deployments", message: "requires v1, so api_version must be unset" };
  },
  setup(o, ctx) {
    const at = (own: string | undefined, host: string) =>
      (own ?? `https://${o.resource}.${host}`).replace(/\/+$/, "");
    const resource = at(o.base_url, "openai.azure.com");
    const foundry = at(o.claude_url ?? o.base_url, "services.ai.azure.com");
    const isClaude = (model: string) => o.claude.some((pattern) => isLike(pattern, model));
    const entra = { loginUrl: o.login_url, file: o.federated_token_file };
    const key = foundryAuth(ctx, entra, { header: "api-key", scope: COGNITIVE });
    const other = foundryAuth(ctx, entra, { header: "x-api-key", scope: FOUNDRY });
    return {
      endpoints: [
        ...openAiEndpoints(resource, key, {
          serves: (model) => !isClaude(model),
          isBatchDeployment: (model) => o.batch_deployments.some((one) => isLike(one, model)),
          version: o.api_version,
        }),
        anthropicEndpoint(foundry, other, isClaude),
      ],
    };
  },
});

function isLike(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (
    model.length >= head.length + tail.length && model.startsWith(head) && model.endsWith(tail)
  );
}

// The endpoints of a resource: v1, with the deployment in the body; deployments, with the
// deployment in the path and an API version in the query; and Anthropic's.

type Serves = (model: string) => boolean;

/** Seconds after which Azure deletes the files of a batch. It is the shortest time that it accepts. */
const FILE_SECONDS = 14 * 86_400;
const FILE_POLL_MS = 1_000;

/**
 * Azure's batch API. `endpoint` is required, but Azure reads the endpoint from the lines. Without
 * an expiry, a resource can have 500 files.
 */
const BATCHES: BatchDialect = {
  lines: 100_000,
  endpoint: "/chat/completions",
  uploadFields: {
    "expires_after.anchor": "created_at",
    "expires_after.seconds": String(FILE_SECONDS),
  },
  createFields: { output_expires_after: { anchor: "created_at", seconds: FILE_SECONDS } },
  waitForFile: (signal) => sleep(FILE_POLL_MS, undefined, { signal }),
};

interface OpenAiOptions {
  readonly serves: Serves;
  /** Whether a deployment runs batches. It then serves no other requests. */
  readonly isBatchDeployment: Serves;
  /** API version for the deployments endpoint. If unset, all requests use v1. */
  readonly version: string | undefined;
}

function openAiEndpoints(
  resource: string,
  auth: Auth<AzureAccount>,
  { serves, isBatchDeployment, version }: OpenAiOptions,
): ProtocolEndpoint<AzureAccount>[] {
  const query = version === undefined ? "" : `?api-version=${encodeURIComponent(version)}`;
  const at = (verb: string) =>
    version === undefined
      ? `/${verb}`
      : ({ model }: CallContext) => `/deployments/${encodeDeployment(model)}/${verb}${query}`;
  const own = {
    base: version === undefined ? `${resource}/openai/v1` : `${resource}/openai`,
    auth,
    servesModel: serves,
  };
  const batches = { batches: { ...openAiBatches(BATCHES), servesModel: isBatchDeployment } };
  return [
    {
      ...own,
      ...(version === undefined && batches),
      protocol: withContentFilterDetails(chatCompletions()),
      paths: { generate: at("chat/completions") },
    },
    // The responses API has no deployment in its path, even on the deployments endpoint.
    {
      ...own,
      ...(version === undefined && batches),
      protocol: withContentFilterDetails(responses()),
      paths: { generate: `/responses${query}` },
      // Only v1 has a WebSocket, and responses without a version in their path.
      ...(version === undefined && { background: openAiBackground() }),
      ...(version === undefined && { sockets: { generate: { path: "/responses" } } }),
    },
    {
      ...own,
      protocol: withContentFilterDetails(embeddings()),
      paths: { generate: at("embeddings") },
      streaming: "never",
    },
    // The older version of this API has the deployment in the query.
    {
      ...own,
      protocol: realtime(),
      sockets: {
        realtime: {
          path: version === undefined ? realtimePath : (of) => versionedRealtimePath(of, query),
        },
      },
    },
  ];
}

/** Returns the path in the older version of the API. */
function versionedRealtimePath(of: CallContext, query: string): string {
  if (of.query.get("intent") === "transcription")
    fail("unsupported", "This Azure resource has no transcription sessions. Remove api_version.", {
      param: "intent",
      code: "unsupported_intent",
    });
  return `/realtime${query}&deployment=${encodeURIComponent(of.model)}`;
}

const anthropicEndpoint = (
  base: string,
  auth: Auth<AzureAccount>,
  serves: Serves,
): ProtocolEndpoint<AzureAccount> => ({
  protocol: messages(claude),
  base: `${base}/anthropic/v1`,
  auth,
  servesModel: serves,
  headers: { "anthropic-version": "2023-06-01" },
});

/** Encodes a deployment name as one path segment. */
function encodeDeployment(model: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `Deployment ${model} not found.`, {
      param: "model",
      code: "model_not_found",
    });
  return encodeURIComponent(model);
}

// Adds details of Azure's content filter to errors: the categories that caused a rejection.

/** Returns the protocol with filter details in its errors. */
function withContentFilterDetails<K extends Operation>(protocol: Protocol<K>): Protocol<K> {
  const client = protocol.client as ClientHalf<K>;
  return {
    ...protocol,
    client: {
      ...client,
      decodeFault: (status, headers, body) =>
        addFilterCategories(client.decodeFault(status, headers, body), body),
    },
  };
}

/** Adds the names of the matched categories, as Azure names them. */
function addFilterCategories(fault: Fault, body: Buffer): Fault {
  const inner = innerErrorIn(body);
  if (!inner || inner["code"] !== "ResponsibleAIPolicyViolation") return fault;
  const categories =
    asObject(inner["content_filter_result"]) ?? asObject(inner["content_filter_results"]);
  return {
    ...fault,
    kind: "content_policy",
    code: "content_filter",
    ...(categories && { details: { content_filter_result: categories } }),
  };
}

function innerErrorIn(body: Buffer): JsonObject | undefined {
  try {
    const error = asObject(asObject(JSON.parse(body.toString()))?.["error"]);
    return asObject(error?.["innererror"]);
  } catch {
    return undefined;
  }
}
