// Files, uploads, batches, background responses, and videos with the Python SDKs of OpenAI, Anthropic,
// and LiteLLM. Batches are in front of a provider that runs none.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createBackgroundApi, say, scriptedModel, startUpstream } from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { FakeVideoApi } from "../../kit/video-api.ts";
import { SHELF } from "../install.ts";
import { environment, versionOf } from "./venv.ts";

const run = promisify(execFile);
const PACKAGES = [
  `openai==${versionOf("openai")}`,
  `anthropic==${versionOf("anthropic")}`,
  "litellm==1.110.2",
];

it("the SDKs run jobs", { timeout: 1_800_000 }, async () => {
  const python = await environment(join(SHELF, "python-jobs"), (pip) => pip(...PACKAGES));
  const key = mintKey().secret;
  await using up = await startUpstream({
    ...scriptedModel(say("done")),
    ...createBackgroundApi({ base: "/native", text: "run by the provider" }).routes("/responses"),
    ...new FakeVideoApi().routes,
  });
  await using gateway = await startInProcess({
    yaml: `
frontends:
  - chat-completions
  - messages
  - { use: responses, with: { background: { native: true } } }
  - videos
  - { use: jobs, with: { run_lines: { per_minute: 60000 } } }
middleware: [{ use: auth, with: { keys: [{ id: alice, digest: ${digestKey(key)} }] } }]
providers:
  plain: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
  native:
    use: openai-compatible
    with: { base_url: "${up.url}/native", api_key: k, responses: true, background: true }
  film:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: k, videos: ["film-*"] }
    models: { film-1: { operation: video, price: { seconds_out: "0.05" } } }
`,
  });
  const env = { ...process.env, GATEWAY_URL: gateway.url, GATEWAY_KEY: key };
  const { stdout } = await run(python, [join(import.meta.dirname, "jobs.py")], { env });
  expect(JSON.parse(stdout)).toEqual({
    openai_batch: ["completed", ["a done", "b done"]],
    openai_upload: [true, true],
    openai_background: ["queued", "completed", "done"],
    openai_native_background: ["queued", "completed", "run by the provider", "response.completed"],
    openai_video: ["queued", "completed", "8", 300_000, true, true],
    anthropic_batch: [2, ["a done", "b done"]],
    litellm_batch: ["completed", ["a done", "b done"]],
  });
});
