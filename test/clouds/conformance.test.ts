// The cloud packages keep the contract, by the checks for any third-party plugin.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { conformanceChecks, say, type ScriptedResponse } from "tollgate/testing";
import aws from "../../plugins/providers/aws/index.ts";
import foundry from "../../plugins/providers/azure-foundry/index.ts";
import vertex from "../../plugins/providers/vertex/index.ts";
import { pictureOf } from "./aws-fake.ts";
import { inConverse, inFrames, invoked } from "./aws-says.ts";
import { ACCOUNT } from "./google-fake.ts";
import { azureFormat } from "../plugins/batches/formats.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-clouds-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A recording, as in a package's own folder. */
function record(place: string, request: object, answer: ScriptedResponse): void {
  const at = join(folder, place);
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, "request.json"), JSON.stringify(request));
  const pieces = [answer.body ?? []]
    .flat()
    .map((piece) =>
      Buffer.from((typeof piece === "object" && "bytes" in piece ? piece.bytes : piece) as Buffer),
    );
  const heads = Object.entries(answer.headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${answer.status ?? 200} OK`, ...heads, "", ""].join("\r\n");
  writeFileSync(join(at, "upstream.http"), Buffer.concat([Buffer.from(head), ...pieces]));
}

const SPEECH = say("Grüße ☕")
  .call("go", { to: "Rome" }, "tooluse_x")
  .usage({ input: 3, output: 5 });
const ask = { model: "model", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };
record("converse/streamed", { ...ask, stream: true }, inFrames(SPEECH));
record("converse/whole", ask, inConverse(SPEECH));
record("messages/streamed", { ...ask, stream: true }, invoked(SPEECH, "model", true));
record("messages/whole", ask, invoked(SPEECH, "model", false));
const answer = (body: object, more: Record<string, string> = {}): ScriptedResponse => ({
  headers: { "content-type": "application/json", ...more },
  body: JSON.stringify(body),
});
record(
  "cohere-embed/whole",
  { model: "model", input: "Hello" },
  answer({ embeddings: { float: [[0.5, 1]] } }, { "x-amzn-bedrock-input-token-count": "1" }),
);
record(
  "bedrock-rerank/whole",
  { model: "model", query: "q", documents: ["a"] },
  answer({ results: [{ index: 0, relevanceScore: 0.5 }] }),
);
record(
  "others/vertex-predict/whole",
  { model: "model", input: "Hello" },
  answer({
    predictions: [
      { embeddings: { values: [0.5, 1], statistics: { token_count: 1, truncated: false } } },
    ],
  }),
);
// Responds on every endpoint with its own format: embeddings and images.
record(
  "native/whole",
  { model: "model", input: "Hello" },
  answer({ embedding: [0.5, 1], inputTextTokenCount: 1, images: [pictureOf(64, 64)] }),
);
// Each endpoint counts another unit of it, and none has text.
writeFileSync(join(folder, "native/whole/expected.json"), JSON.stringify({ text: "" }));

// Recordings of the vendors' own dialects are next to the tests of their protocols.
for (const protocol of ["gemini", "embeddings"]) {
  mkdirSync(join(folder, "others"), { recursive: true });
  const recorded = join(import.meta.dirname, "../fixtures/recordings", protocol);
  symlinkSync(recorded, join(folder, "others", protocol));
}
const OTHERS = join(folder, "others");

const tokens = async () =>
  new Response(JSON.stringify({ access_token: "canary-token", expires_in: 3600 }), {
    headers: { "content-type": "application/json" },
  });

describe.each([
  [
    "aws",
    conformanceChecks(aws, {
      with: { region: "eu-central-1" },
      credential: { access_key_id: "AKIDCANARY", secret_access_key: "canary-7f3a-secret" },
      recordings: folder,
      module: new URL("../../plugins/providers/aws/index.ts", import.meta.url),
    }),
  ],
  [
    "vertex",
    conformanceChecks(vertex, {
      with: { project: "my-project" },
      credential: { service_account: ACCOUNT },
      recordings: OTHERS,
      fetch: tokens,
      module: new URL("../../plugins/providers/vertex/index.ts", import.meta.url),
    }),
  ],
  [
    "azure-foundry",
    conformanceChecks(foundry, {
      with: { resource: "my-resource" },
      credential: {
        tenant_id: "tenant-1",
        client_id: "client-1",
        client_secret: "canary-7f3a-secret",
      },
      recordings: OTHERS,
      batches: azureFormat,
      fetch: tokens,
      module: new URL("../../plugins/providers/azure-foundry/index.ts", import.meta.url),
    }),
  ],
])("%s", (_name, checks) => {
  for (const check of checks) it(check.name, check.run);
});
