// Records one session of each named version of a coding client as a fixture: the requests as the
// client sends them, without texts, secrets, and paths. Names, types, and headers are kept. Versions
// that send the same session share it, and sessions share the definitions of their tools.
//
//     node --conditions=tollgate-source test/clients/record-sessions.ts claude-code@2.1.332 codex@0.171.0
//
// Versions that are recorded already are skipped. A client that was installed for this is removed.
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  call,
  say,
  startUpstream,
  toolResults,
  type ModelScript,
  type UpstreamRequest,
} from "tollgate/testing";
import { installed, isInstalled, uninstall } from "./install.ts";
import { USAGE } from "./scripts.ts";
import { run } from "./stage.ts";

/** Longer texts are prompts and descriptions, which belong to the client's vendor. */
const MAX_TEXT = 40;
const KEPT_HEADERS =
  /^(?:anthropic-|x-app$|x-claude-code-|x-codex-|openai-beta$|session[-_]id$|originator$|accept$|content-type$)/;
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{20,}|[0-9a-f]{32,}/g;
const TIME_MS = /\b1[789]\d{11}\b/g;

export interface RecordedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}
export interface RecordedSession {
  /** The versions that sent it. */
  readonly versions: readonly string[];
  readonly requests: readonly RecordedRequest[];
}
export const CLIENTS = ["claude-code", "codex"] as const;

/** The form of a file: the `tools` of a request's body are places in the `tools` of the file. */
interface SessionFile {
  readonly tools: unknown[];
  readonly sessions: { versions: string[]; requests: RecordedRequest[] }[];
}
const pathOf = (client: string) =>
  join(import.meta.dirname, `../fixtures/client-sessions/${client}.json`);
const readSessionFile = (client: string): SessionFile =>
  existsSync(pathOf(client))
    ? JSON.parse(readFileSync(pathOf(client), "utf8"))
    : { tools: [], sessions: [] };

/** Returns the body with each of its tools replaced. */
const withTools = <In, Out>(body: unknown, replace: (tool: In) => Out): unknown => {
  const { tools } = body as { readonly tools?: readonly In[] };
  return tools === undefined ? body : { ...(body as object), tools: tools.map(replace) };
};

/** The recorded sessions of a client, the oldest version first. */
export function recordedSessions(client: string): readonly RecordedSession[] {
  const { tools, sessions } = readSessionFile(client);
  return sessions.map(({ versions, requests }) => ({
    versions,
    requests: requests.map((request) => ({
      ...request,
      body: withTools(request.body, (at: number) => tools[at]),
    })),
  }));
}

const byVersion = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });

/** Adds a session to the file of its client. */
async function keepSession(
  client: string,
  version: string,
  requests: readonly RecordedRequest[],
): Promise<void> {
  const { tools, sessions } = readSessionFile(client);
  const placeOf = (tool: unknown): number => {
    const at = tools.findIndex((one) => isDeepStrictEqual(one, tool));
    return at < 0 ? tools.push(tool) - 1 : at;
  };
  const kept = requests.map((request) => ({ ...request, body: withTools(request.body, placeOf) }));
  const same = sessions.find((session) => isDeepStrictEqual(session.requests, kept));
  if (same === undefined) sessions.push({ versions: [version], requests: kept });
  else same.versions.splice(0, Infinity, ...[...same.versions, version].toSorted(byVersion));
  sessions.sort((a, b) => byVersion(a.versions[0]!, b.versions[0]!));
  const lines = (items: readonly unknown[]) => items.map((one) => JSON.stringify(one)).join(",\n");
  await writeFile(
    pathOf(client),
    `{"tools":[\n${lines(tools)}\n],"sessions":[\n${lines(sessions)}\n]}\n`,
  );
}

/** Removes what belongs to the vendor, and what differs between two runs of one version. */
function scrub(value: unknown, home: string, version: string): unknown {
  const text = (from: string) => {
    const plain = from.replaceAll(home, "/home");
    return plain.length > MAX_TEXT
      ? "long text"
      : plain.replaceAll(ID, "id").replaceAll(version, "version");
  };
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return value.map((one) => scrub(one, home, version));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [text(name), scrub(one, home, version)]),
  );
}

const requestOf = (
  { path, headers, body }: UpstreamRequest,
  home: string,
  version: string,
): RecordedRequest => ({
  path,
  headers: Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => KEPT_HEADERS.test(name))
      .map(([name, value]) => [
        name,
        String(value)
          .replaceAll(home, "/home")
          .replaceAll(ID, "id")
          .replaceAll(TIME_MS, "1700000000000")
          .replaceAll(version, "version"),
      ]),
  ),
  body: scrub(JSON.parse(String(body)), home, version),
});

/** Runs a turn with a tool, and continues the session. */
async function record(client: string, version: string): Promise<readonly RecordedRequest[]> {
  const isClaude = client === "claude-code";
  const needed = {
    name: isClaude ? "@anthropic-ai/claude-code" : "@openai/codex",
    version,
    main: isClaude ? "cli-wrapper.cjs" : "bin/codex.js",
  };
  const wasInstalled = isInstalled(needed);
  const program = await installed(needed);
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
      .map((request) => requestOf(request, home, version));
  } finally {
    if (!wasInstalled) await uninstall(needed);
    await upstream.close();
    await rm(home, { recursive: true, force: true });
  }
}

for (const name of import.meta.main ? process.argv.slice(2) : []) {
  const at = name.lastIndexOf("@");
  const [client, version] = [name.slice(0, at), name.slice(at + 1)];
  if (readSessionFile(client).sessions.some(({ versions }) => versions.includes(version))) continue;
  try {
    const requests = await record(client, version);
    await keepSession(client, version, requests);
    console.log(`${name}: ${requests.length} requests`);
  } catch (error) {
    console.log(`${name}: ${(error as Error).message.slice(0, 300)}`);
    process.exitCode = 1;
  }
}
