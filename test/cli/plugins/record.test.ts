// `tollgate record`: its requests to a provider in gateway.yaml and its output, which contains no
// secret.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { jsonResponse, readRecordings, say, scriptedModel, startUpstream } from "tollgate/testing";
import { createTestFolder } from "../../kit/process/command-line.ts";

const KEY = "canary-record-7f3a91";
const YAML = `frontends: [chat-completions]
providers:
  acme: { use: openai-compatible, with: { base_url: "\${env:UP}/v1", api_key: "\${env:KEY}" } }
`;

const texts = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));

it("records non-streaming and streaming responses within the requested limit, in a form that tests can replay", async () => {
  await using up = await startUpstream(scriptedModel(say(`Your key is ${KEY}`), ["model"]));
  await using at = await createTestFolder({ "gateway.yaml": YAML });
  const env = { UP: up.url, KEY };
  const words = ["record", "acme/model", "--prompt", "Hi", "--max-tokens", "9"];
  const { code, out, err } = await at.tollgate(words, { env });
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(
    /^200 {2}test\/recordings\/\S+hello-streamed\n200 {2}test\/recordings\/\S+hello-whole\nWrote 2 recordings\. Review them before you publish them\.\n$/,
  );
  const asked = up.requests.filter(({ method }) => method === "POST");
  expect(asked.map((one) => one.headers.authorization)).toEqual([`Bearer ${KEY}`, `Bearer ${KEY}`]);
  for (const one of asked) {
    const { messages, max_tokens, max_completion_tokens } = one.json();
    expect([messages.at(-1).content, max_completion_tokens ?? max_tokens]).toEqual(["Hi", 9]);
  }
  const [protocol] = readdirSync(join(at.path, "test/recordings"));
  expect(readRecordings(join(at.path, "test/recordings", protocol!))).toHaveLength(2);
  for (const text of [...texts(join(at.path, "test/recordings")), out])
    expect(text).not.toContain(KEY);
  expect(texts(join(at.path, "test/recordings")).join()).toContain("*".repeat(KEY.length));

  const told = await at.tollgate([...words, "--to", "other", "--json"], { env });
  const { recordings: made } = JSON.parse(told.out) as {
    recordings: { path: string; status: number }[];
  };
  expect(made.map(({ path, status }) => [existsSync(join(path, "upstream.http")), status])).toEqual(
    [
      [true, 200],
      [true, 200],
    ],
  );
});

it("records a refusal as a refusal", async () => {
  await using up = await startUpstream({
    "*": jsonResponse({ error: { message: `No ${KEY}.` } }, 401),
  });
  await using at = await createTestFolder({ "gateway.yaml": YAML });
  const { code, out } = await at.tollgate(["record", "acme/model"], { env: { UP: up.url, KEY } });
  expect([code, out]).toEqual([0, expect.stringMatching(/^401 {2}.+\n401 {2}/)]);
  for (const text of texts(join(at.path, "test/recordings"))) expect(text).not.toContain(KEY);
});

it.each([
  [["acme"], "Missing model. Pass it as <provider>/<model>."],
  [["acmee/model"], /Unknown provider "acmee" in \S+gateway\.yaml\. Did you mean "acme"\?/],
  [["acme/model", "--max-tokens", "many"], "--max-tokens must be a number."],
  [["acme/model", "--max-tokens", "100000"], "--max-tokens must be a number."],
  [["acme/model", "--too", "x"], 'Unknown option "--too". Did you mean "--to"?'],
])("%j calls no provider", async (words, said) => {
  await using up = await startUpstream(scriptedModel(say("Hello"), ["model"]));
  await using at = await createTestFolder({ "gateway.yaml": YAML });
  const { code, out, err } = await at.tollgate(["record", ...words], { env: { UP: up.url, KEY } });
  expect([code, out, err]).toEqual([
    1,
    "",
    typeof said === "string" ? expect.stringContaining(said) : expect.stringMatching(said),
  ]);
  expect(up.requests).toEqual([]);
});
