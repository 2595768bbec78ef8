// AWS Bedrock. Claude uses InvokeModel, and every other chat model uses Converse. Titan and Cohere
// embeddings, images, and reranking have their own APIs. OpenAI's and Anthropic's protocols are
// available on the runtime and on Mantle.
import {
  defineProvider,
  type ProviderClient,
  type Facts,
  type Auth,
  type ProtocolEndpoint,
} from "tollgate/plugin";
import {
  awsAuth,
  type ServiceClock,
  accountSchema,
  createCredentialCache,
  ENV_VARIABLES,
  type AwsAccount,
} from "./auth.ts";
import { bedrockBatches, type BedrockBatchPlace } from "./batches.ts";
import { bedrockClaude, withAnthropicName } from "./claude.ts";
import { converse } from "./converse/index.ts";
import { fetchModelList, usesApi } from "./model-list.ts";
import { generateImages } from "./images.ts";
import { bedrockRerank } from "./rerank.ts";
import { bedrockCohere, embedWithTitan } from "./embeddings.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { parseAwsError } from "./errors.ts";

// Models that can be called only if they are listed. The names of rerank models are from AWS's
// documentation (docs.aws.amazon.com/bedrock/latest/userguide, rerank-supported). The only
// embedding model that was verified with that documentation is Cohere's third version. The other
// embedding and image model names are from public code. Prices are omitted, because no AWS source for them was
// checked.
const facts: Facts = {
  asOf: "2026-11-23",
  models: [
    { model: "amazon.titan-embed-text-v1", operation: "embedding" },
    { model: "amazon.titan-embed-text-v2:0", operation: "embedding" },
    { model: "cohere.embed-english-v3", operation: "embedding" },
    { model: "cohere.embed-multilingual-v3", operation: "embedding" },
    { model: "cohere.embed-v4:0", operation: "embedding" },
    { model: "amazon.nova-canvas-v1:0", operation: "image", limits: { images: 5 } },
    { model: "amazon.titan-image-generator-v2:0", operation: "image", limits: { images: 5 } },
    { model: "stability.sd3-5-large-v1:0", operation: "image", limits: { images: 1 } },
    { model: "stability.stable-image-core-v1:1", operation: "image", limits: { images: 1 } },
    { model: "stability.stable-image-ultra-v1:1", operation: "image", limits: { images: 1 } },
    { model: "amazon.rerank-v1:0", operation: "rerank" },
    { model: "cohere.rerank-v3-5:0", operation: "rerank" },
  ],
};

const patterns = (description: string) =>
  ({
    type: "array",
    items: { type: "string", minLength: 1 },
    default: [],
    description: `${description}. Each name can contain one *, which matches any text`,
  }) as const;

const address = (description: string) =>
  ({ type: "string", minLength: 1, "x-origin": true, description }) as const;

export default defineProvider({
  api: 1,
  name: "aws",
  summary: "Amazon Bedrock: Converse, InvokeModel, and its compatible APIs",
  stability: "beta",
  unverified: ["mantle", "list", "batches"],
  credential: accountSchema,
  facts,
  needs: { env: ENV_VARIABLES, metadata: true },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      region: {
        type: "string",
        pattern: "^[a-z]{2}(-[a-z]+)+-\\d$",
        "x-expects": "a region such as us-east-1",
        description: "AWS region. Default: AWS_REGION, then AWS_DEFAULT_REGION",
      },
      claude: patterns(
        "Application inference profiles that use Claude, if their names do not show it",
      ),
      openai: patterns("Models to call at the runtime's /openai/v1, in OpenAI protocols"),
      mantle: patterns(
        "Models to call at Mantle: Claude in Anthropic messages, others in OpenAI protocols",
      ),
      betas: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description: "anthropic-beta values that Bedrock supports. Other values are not sent",
      },
      guardrail: {
        type: "object",
        additionalProperties: false,
        required: ["id", "version"],
        properties: {
          id: { type: "string", minLength: 1, description: "ID or ARN of the guardrail" },
          version: { type: "string", minLength: 1, description: "A number, or DRAFT" },
        },
        description:
          "Bedrock guardrail for all chats. Claude is then also called through Converse, " +
          "and requests with Service-ZDR are rejected",
      },
      batch_uri: {
        type: "string",
        pattern: "^s3://[a-z0-9.-]+(/[\\w./-]*)?$",
        "x-expects": "a location such as s3://my-bucket/tollgate",
        description:
          "S3 bucket and prefix for the lines and results of batches. If unset, no batches are run",
      },
      batch_role: {
        type: "string",
        minLength: 1,
        description: "ARN of the service role with which Bedrock accesses the bucket",
      },
      storage_url: address("Base URL of S3. Default: https://s3.<region>.amazonaws.com"),
      list_models: {
        type: "boolean",
        default: false,
        description:
          "Whether to list models and profiles at the control plane, which requires " +
          "additional permissions",
      },
      runtime_url: address(
        "Base URL of the runtime. Default: https://bedrock-runtime.<region>.amazonaws.com",
      ),
      agent_url: address(
        "Base URL of the reranking API. Default: https://bedrock-agent-runtime.<region>.amazonaws.com",
      ),
      mantle_url: address(
        "Base URL of the Mantle API. Default: https://bedrock-mantle.<region>.api.aws",
      ),
      control_url: address(
        "Base URL of the model list. Default: https://bedrock.<region>.amazonaws.com",
      ),
      mantle_service: {
        type: "string",
        minLength: 1,
        default: "bedrock-mantle",
        description: "Service name in the signatures of requests to Mantle",
      },
    },
  },
  *check({ guardrail, openai, mantle, batch_uri, batch_role }) {
    if ((batch_uri === undefined) !== (batch_role === undefined))
      yield {
        message: "Batches require both batch_uri and batch_role",
        path: batch_uri === undefined ? "/batch_role" : "/batch_uri",
      };
    if (guardrail !== undefined && openai.length + mantle.length > 0)
      yield {
        message:
          "A guardrail applies only to models that are called through Converse, and these " +
          "models are not",
        path: openai.length > 0 ? "/openai" : "/mantle",
      };
  },
  setup(o, ctx) {
    const region =
      o.region ?? ctx.env("AWS_REGION") ?? ctx.env("AWS_DEFAULT_REGION") ?? "us-east-1";
    const keys = createCredentialCache(ctx.env);
    const clock = ctx.shared<ServiceClock>("clock", () => ({ aheadMs: 0 }));
    const storage = withoutTrailingSlash(o.storage_url ?? `https://s3.${region}.amazonaws.com`);
    const auth = awsAuth(keys, clock, {
      region,
      service: "bedrock",
      storage: new URL(storage).origin,
    });
    const atMantle = awsAuth(keys, clock, { region, service: o.mantle_service });
    const runtime = withoutTrailingSlash(
      o.runtime_url ?? `https://bedrock-runtime.${region}.amazonaws.com`,
    );
    const agent = withoutTrailingSlash(
      o.agent_url ?? `https://bedrock-agent-runtime.${region}.amazonaws.com`,
    );
    const mantle = withoutTrailingSlash(o.mantle_url ?? `https://bedrock-mantle.${region}.api.aws`);
    const control = withoutTrailingSlash(
      o.control_url ?? `https://bedrock.${region}.amazonaws.com`,
    );
    const batchesOf = (api: BedrockBatchPlace["api"]) =>
      o.batch_uri !== undefined &&
      o.batch_role !== undefined && {
        batches: bedrockBatches({ control, storage, uri: o.batch_uri, role: o.batch_role, api }),
      };
    const by = usesApi({ ...o, hasGuardrail: o.guardrail !== undefined });
    const own = { base: runtime, auth, origins: [control] };
    const whole = { streaming: "never" as const };
    return {
      endpoints: [
        {
          ...own,
          protocol: bedrockClaude(o.betas),
          servesModel: by("claude"),
          ...batchesOf("InvokeModel"),
        },
        {
          ...own,
          protocol: converse(o.guardrail),
          servesModel: by("converse"),
          ...batchesOf("Converse"),
        },
        {
          ...own,
          ...whole,
          operation: "embedding" as const,
          run: embedWithTitan,
          servesModel: by("titan"),
        },
        { ...own, ...whole, protocol: bedrockCohere(), servesModel: by("cohere") },
        {
          ...own,
          ...whole,
          operation: "image" as const,
          run: generateImages,
          servesModel: by("pictures"),
        },
        {
          ...own,
          ...whole,
          base: agent,
          protocol: bedrockRerank((model) =>
            model.startsWith("arn:")
              ? model
              : `arn:aws:bedrock:${region}::foundation-model/${model}`,
          ),
          servesModel: by("rerank"),
        },
        ...(o.openai.length > 0 ? openAiEndpoints(`${runtime}/openai/v1`, auth, by("openai")) : []),
        ...(o.mantle.length > 0
          ? [
              ...openAiEndpoints(`${mantle}/v1`, atMantle, by("mantle")),
              messagesEndpoints(`${mantle}/anthropic/v1`, atMantle, by("mantle claude")),
            ]
          : []),
      ],
      ...(o.list_models && { listModels: (line: ProviderClient) => fetchModelList(line, control) }),
    };
  },
});

const withoutTrailingSlash = (url: string): string => url.replace(/\/+$/, "");

// Bedrock's endpoints for OpenAI's and Anthropic's protocols, with events as text.

type Serves = (model: string) => boolean;

/** Errors that occur before the protocol is reached have AWS's own format. */
const withAwsErrors = <P extends ProtocolEndpoint["protocol"]>(protocol: P): P => {
  const client = protocol.client!;
  return {
    ...protocol,
    client: {
      ...client,
      decodeFault: (status: number, headers: Parameters<typeof parseAwsError>[1], body: Buffer) =>
        headers["x-amzn-errortype"] === undefined
          ? client.decodeFault(status, headers, body)
          : parseAwsError(status, headers, body),
    },
  };
};

const openAiEndpoints = (
  base: string,
  auth: Auth<AwsAccount>,
  serves: Serves,
): ProtocolEndpoint<AwsAccount>[] => [
  { protocol: withAwsErrors(chatCompletions()), base, auth, servesModel: serves },
  { protocol: withAwsErrors(responses()), base, auth, servesModel: serves },
];

function messagesEndpoints(
  base: string,
  auth: Auth<AwsAccount>,
  serves: Serves,
): ProtocolEndpoint<AwsAccount> {
  const own = messages({ ...claude, countsTokens: false });
  const client = own.client!;
  const protocol = {
    ...own,
    client: {
      ...client,
      encodeRequest: (...[r, of]: Parameters<typeof client.encodeRequest>) => ({
        ...client.encodeRequest(r, withAnthropicName(of)),
        model: of.model,
      }),
      mayHideReasoning: (...[out, of]: Parameters<NonNullable<typeof client.mayHideReasoning>>) =>
        client.mayHideReasoning!(out, withAnthropicName(of)),
    },
  };
  return {
    protocol: withAwsErrors(protocol),
    base,
    auth,
    servesModel: serves,
    headers: { "anthropic-version": "2023-06-01" },
  };
}
