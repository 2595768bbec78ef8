// AWS features outside of Bedrock's own protocols: sources of keys, compatible APIs, the model
// list, and the meaning of each error.
import { AnthropicBedrockMantle } from "@anthropic-ai/bedrock-sdk";
import OpenAI from "openai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ErrorKind } from "tollgate/plugin";
import { startTestGateway, jsonResponse, say, type TestGateway } from "tollgate/testing";
import aws from "../../plugins/providers/aws/index.ts";
import { parseAwsStreamError, parseAwsError } from "../../plugins/providers/aws/errors.ts";
import { CLAUDE, fakeAws, KEYS, MODEL, REGION, type FakeAws } from "./aws-fake.ts";
import { until } from "../kit/wait.ts";
import { rowsOf } from "./rows.ts";

let fake: FakeAws;
let at: TestGateway;
let openai: OpenAI;
const home = mkdtempSync(join(tmpdir(), "tollgate-aws-"));
/** The credential chain of the vendor's SDK reads these from the process environment. */
const AROUND = {
  HOME: home,
  AWS_EC2_METADATA_DISABLED: "true",
  AWS_CONTAINER_CREDENTIALS_FULL_URI: "",
};
const before: Record<string, string | undefined> = {};
/** Number of keys that the container has returned. */
let given = 0;
const messages = [{ role: "user" as const, content: "Hello" }];

beforeAll(async () => {
  fake = await fakeAws();
  fake.up.setRoutes({
    "GET /container": () => {
      const token = `t-${++given}`;
      fake.keys.set(`ASIA${given}`, { id: `ASIA${given}`, secret: "s", token });
      return jsonResponse({
        AccessKeyId: `ASIA${given}`,
        SecretAccessKey: "s",
        Token: token,
        Expiration: new Date(Date.now() + 3600_000).toISOString(),
      });
    },
    "GET /foundation-models": jsonResponse({
      modelSummaries: [
        {
          modelId: "amazon.nova-2-lite-v1:0",
          outputModalities: ["TEXT"],
          inferenceTypesSupported: ["INFERENCE_PROFILE"],
        },
        {
          modelId: "mistral.small",
          modelName: "Small",
          outputModalities: ["TEXT"],
          inferenceTypesSupported: ["ON_DEMAND"],
        },
        {
          modelId: "amazon.embed",
          outputModalities: ["EMBEDDING"],
          inferenceTypesSupported: ["ON_DEMAND"],
        },
        {
          modelId: "amazon.canvas",
          outputModalities: ["IMAGE"],
          inferenceTypesSupported: ["ON_DEMAND"],
        },
      ],
    }),
    "GET /inference-profiles": (asked) =>
      jsonResponse(
        asked.query.get("nextToken") === "a/b=="
          ? {
              inferenceProfileSummaries: [
                { inferenceProfileId: "eu.gone", status: "GONE", models: [] },
              ],
            }
          : {
              nextToken: "a/b==",
              inferenceProfileSummaries: [
                {
                  inferenceProfileId: MODEL,
                  inferenceProfileName: "Lite",
                  status: "ACTIVE",
                  models: [
                    {
                      modelArn:
                        "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-2-lite-v1:0",
                    },
                  ],
                },
              ],
            },
      ),
  });
  AROUND.AWS_CONTAINER_CREDENTIALS_FULL_URI = `${fake.url}/container`;
  for (const [name, value] of Object.entries(AROUND)) {
    before[name] = process.env[name];
    process.env[name] = value;
  }
  const reached = `region: ${REGION}, runtime_url: "${fake.url}", control_url: "${fake.url}", mantle_url: "${fake.url}/mantle"`;
  at = await startTestGateway({
    plugins: { aws },
    env: { AWS_ACCESS_KEY_ID: KEYS.id, AWS_SECRET_ACCESS_KEY: KEYS.secret },
    yaml: `
frontends: [chat-completions, responses, messages, models]
providers:
  around: { use: aws, with: { ${reached}, list_models: true, openai: ["openai.gpt-oss-*"], mantle: ["openai.gpt-6*", "anthropic.claude-*"] } }
  chain: { use: aws, with: { ${reached}, from: chain } }
`,
  });
  openai = new OpenAI({ apiKey: "any", maxRetries: 0, baseURL: `${at.url}/v1` });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
  for (const [name, value] of Object.entries(before))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  rmSync(home, { recursive: true });
});
beforeEach(() => {
  fake.says = say("Hello there").usage({ input: 3, output: 2 });
  fake.up.reset();
  (at.storeCommands as unknown[]).length = 0;
});

const ask = async (model: string) =>
  (await openai.chat.completions.create({ model, messages })).choices[0]!.message.content;

describe("keys", () => {
  it("from the environment sign requests", async () => {
    expect(await ask(`around/${MODEL}`)).toBe("Hello there");
    expect(fake.up.requests.at(-1)!.headers.authorization).toContain(`Credential=${KEYS.id}/`);
  });

  it("from the credential chain are found by the vendor's SDK, and fetched again after the service rejects them as expired", async () => {
    expect(await ask(`chain/${MODEL}`)).toBe("Hello there");
    expect(given).toBe(1);
    fake.over.add("t-1");
    expect(await ask(`chain/${MODEL}`)).toBe("Hello there");
    expect(given).toBe(2);
    expect(fake.up.requests.filter(({ method }) => method === "POST")).toHaveLength(3);
    expect(rowsOf(at).map(({ state }) => state)).toEqual(["unpriced", "unpriced"]);
  });
});

describe("compatible APIs of the service", () => {
  it.each([
    ["openai.gpt-oss-120b-1:0", "/openai/v1/chat/completions", "bedrock"],
    ["openai.gpt-6-sol", "/mantle/v1/chat/completions", "bedrock-mantle"],
    ["anthropic.claude-opus-4-6", "/mantle/anthropic/v1/messages", "bedrock-mantle"],
  ])("%s is called at %s, signed for %s", async (model, path, service) => {
    expect(await ask(`around/${model}`)).toBe("Hello there");
    const asked = fake.up.requests.at(-1)!;
    expect(asked.path).toBe(path);
    expect(asked.json().model).toBe(model);
    expect(asked.headers.authorization).toContain(`/${REGION}/${service}/aws4_request`);
  });

  it("forwards responses unchanged, and does not send Claude models there from elsewhere", async () => {
    const { output_text: text } = await openai.responses.create({
      model: "around/openai.gpt-6-sol",
      input: "Hello",
    });
    expect([text, fake.up.requests.at(-1)!.path]).toEqual(["Hello there", "/mantle/v1/responses"]);
    await ask(`around/${CLAUDE}`);
    expect(fake.up.requests.at(-1)!.path).toMatch(/\/invoke$/);
  });

  it("Anthropic's SDK for Mantle accepts the fake service", async () => {
    const client = new AnthropicBedrockMantle({
      awsRegion: REGION,
      awsAccessKey: KEYS.id,
      awsSecretAccessKey: KEYS.secret,
      baseURL: `${fake.url}/mantle/anthropic`,
      maxRetries: 0,
    });
    const { content } = await client.messages.create({
      model: "anthropic.claude-opus-4-6",
      max_tokens: 50,
      messages,
    });
    expect(content).toMatchObject([{ text: "Hello there" }]);
  });
});

it("lists models and profiles with their output types", async () => {
  const ids = async () => {
    const res = await fetch(`${at.url}/v1/models`);
    return ((await res.json()) as any).data.map(({ id }: any) => id) as string[];
  };
  await until(async () => (await ids()).includes(`around/${MODEL}`));
  const all = await ids();
  expect(all).toContain("around/mistral.small");
  expect(all).not.toContain("around/amazon.canvas");
  expect(all).not.toContain("around/amazon.nova-2-lite-v1:0");
});

describe("the meaning of errors", () => {
  const cases: readonly (readonly [number, string, string, ErrorKind])[] = [
    [429, "ThrottlingException", "Slow down.", "rate_limited"],
    [400, "ServiceQuotaExceededException", "Too much.", "rate_limited"],
    [429, "ModelNotReadyException", "Not ready.", "overloaded"],
    [503, "ServiceUnavailableException", "Away.", "overloaded"],
    [408, "ModelTimeoutException", "Late.", "timeout"],
    [424, "ModelErrorException", "Broke.", "upstream"],
    [500, "InternalServerException", "Broke.", "upstream"],
    [403, "AccessDeniedException", "User is not authorized.", "upstream_auth"],
    [
      403,
      "AccessDeniedException",
      "You don't have access to the model with the specified model ID.",
      "unsupported",
    ],
    [404, "ResourceNotFoundException", "No such model.", "not_found"],
    [400, "ValidationException", "Malformed.", "invalid"],
    [400, "ValidationException", "Input is too long for requested model.", "context_length"],
  ];
  it.each(cases)("%i %s, %s: %s", (status, name, message, kind) => {
    const body = Buffer.from(JSON.stringify({ message }));
    const fault = parseAwsError(status, { "x-amzn-errortype": `${name}:http://x/` }, body);
    expect(fault).toMatchObject({ kind, code: name, message });
    const older = Buffer.from(JSON.stringify({ __type: `com.amazon#${name}`, message }));
    expect(parseAwsError(status, {}, older).kind).toBe(kind);
  });

  it.each([
    ["throttlingException", "rate_limited"],
    ["modelStreamErrorException", "upstream"],
    ["validationException", "invalid"],
    ["serviceUnavailableException", "overloaded"],
    ["newerThanUs", "upstream"],
  ])("%s in a stream: %s", (name, kind) =>
    expect(parseAwsStreamError(name, Buffer.from('{"message":"No."}'))).toMatchObject({
      kind,
      message: "No.",
    }),
  );

  it("a model that needs an inference profile is named in the error", () => {
    const body = Buffer.from(
      JSON.stringify({ message: "Invocation with on-demand throughput isn’t supported." }),
    );
    expect(
      parseAwsError(400, { "x-amzn-errortype": "ValidationException" }, body).message,
    ).toContain("inference profile");
  });
});
