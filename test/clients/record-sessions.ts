// Records one session of coding clients as fixtures: the requests as the client sends them, without
// texts, secrets, and paths. Names, types, and headers are kept. Run it for each new version:
//
//     node --conditions=tollgate-source test/clients/record-sessions.ts claude-code@2.1.332 codex@0.171.0
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  call,
  say,
  startUpstream,
  toolResults,
  type ModelScript,
  type UpstreamRequest,
} from "tollgate/testing";
import { installed } from "./install.ts";
import { USAGE } from "./scripts.ts";
import { run } from "./stage.ts";

const FOLDER = join(import.meta.dirname, "../fixtures/client-sessions");
/** Longer texts are prompts and descriptions, which belong to the client's vendor. */
const MAX_TEXT = 40;
const KEPT_HEADERS =
  /^(?:anthropic-|x-app$|x-claude-code-|x-codex-|openai-beta$|session[-_]id$|originator$|accept$|content-type$)/;
const VARIABLE = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{20,}|[0-9a-f]{32,}/g;

export interface RecordedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const scrubText = (text: string): string =>
  (text.length > MAX_TEXT ? `text of ${text.length} characters` : text).replaceAll(VARIABLE, "id");

function scrub(value: unknown, home: string): unknown {
  if (typeof value === "string") return scrubText(value.replaceAll(home, "/home"));
  if (Array.isArray(value)) return value.map((one) => scrub(one, home));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [scrubText(name), scrub(one, home)]),
  );
}

const requestOf = ({ path, headers, body }: UpstreamRequest, home: string): RecordedRequest => ({
  path,
  headers: Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => KEPT_HEADERS.test(name))
      .map(([name, value]) => [name, String(value).replaceAll(VARIABLE, "id")]),
  ),
  body: scrub(JSON.parse(String(body)), home),
});

/** Runs a turn with a tool, and continues the session. */
async function record(client: string, version: string): Promise<readonly RecordedRequest[]> {
  const isClaude = client === "claude-code";
  const program = await installed({
    name: isClaude ? "@anthropic-ai/claude-code" : "@openai/codex",
    version,
    main: isClaude ? "cli-wrapper.cjs" : "bin/codex.js",
  });
  const home = await mkdtemp(join(tmpdir(), "tollgate-record-"));
  const upstream = await startUpstream({});
  let script: (asked: UpstreamRequest) => ModelScript = () => say("");
  const react = (asked: UpstreamRequest) => script(asked).toResponse(asked);
  upstream.setRoutes({ "POST /v1/messages": react, "POST /v1/responses": react });
  const note = join(home, "note.txt");
  await writeFile(note, "A note.");
  await mkdir(join(home, "tmp"));
  await mkdir(join(home, ".codex"));
  await writeFile(
    join(home, ".codex/config.toml"),
    `model = "gpt-5.5"
model_provider = "local"
check_for_update_on_startup = false
analytics = { enabled = false }
[model_providers.local]
name = "Local"
base_url = "${upstream.url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
`,
  );
  const ask = (words: string, again: boolean) =>
    run({
      args: isClaude
        ? [
            program,
            "--print",
            ...(again ? ["--continue"] : []),
            "--model",
            "claude-sonnet-4-6",
            words,
          ]
        : [
            program,
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            ...(again ? ["resume", "--last"] : []),
            words,
          ],
      cwd: home,
      env: {
        HOME: home,
        TMPDIR: join(home, "tmp"),
        LOCAL_KEY: "key",
        ANTHROPIC_BASE_URL: upstream.url,
        ANTHROPIC_AUTH_TOKEN: "key",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_TELEMETRY: "1",
      },
    });
  try {
    script = (asked) =>
      toolResults(asked).length > 0
        ? say("A note.").usage(USAGE)
        : (isClaude
            ? call("Read", { file_path: note })
            : call("exec_command", { cmd: `cat '${note}'` })
          ).usage(USAGE);
    const first = await ask("Read the note.", false);
    script = () => say("Yes.").usage(USAGE);
    const second = await ask("Again?", true);
    if (first.code !== 0 || second.code !== 0)
      throw new Error(`${client} ${version} failed: ${first.err}${second.err}`);
    return upstream.requests
      .filter(({ method }) => method === "POST")
      .map((request) => requestOf(request, home));
  } finally {
    await upstream.close();
    await rm(home, { recursive: true, force: true });
  }
}

for (const name of import.meta.main ? process.argv.slice(2) : []) {
  const at = name.lastIndexOf("@");
  const [client, version] = [name.slice(0, at), name.slice(at + 1)];
  try {
    const requests = await record(client, version);
    const text = `${JSON.stringify({ client, version, requests }, null, 1)}\n`;
    await writeFile(join(FOLDER, `${client}-${version}.json`), text);
    console.log(`${name}: ${requests.length} requests, ${text.length} bytes`);
  } catch (error) {
    console.log(`${name}: ${(error as Error).message.slice(0, 300)}`);
    process.exitCode = 1;
  }
}
