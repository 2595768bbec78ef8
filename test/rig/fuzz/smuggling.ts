// Requests that two successive parsers could split differently, each with a hidden second one that
// must never reach a provider. They are sent directly and through proxies with other parsers.
import { connect } from "node:net";
import type { LedgerEntry } from "tollgate/plugin";
import type { Daemon } from "../../kit/process/daemon.ts";
import type { FuzzSite } from "./target.ts";
import { proxies } from "./proxies.ts";

/** Part of the prompt of every hidden request. */
const TRIPWIRE = "tripwire";
const SILENT_MS = 250;
/** Time limit for an expected event, because the machine may be busy. */
const COMES_MS = 2_000;

const BODY = '{"model":"chat/m","messages":[{"role":"user","content":"plain"}]}';
const HIDDEN = BODY.replace("plain", TRIPWIRE);
const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

export interface SmuggledCase {
  readonly name: string;
  /** KEY is replaced by a client's key. */
  readonly text: string;
  /**
   * Control: the second one is a separate request in any interpretation, and shows that the
   * detection works.
   */
  readonly control?: true;
}

const request = (
  lines: readonly string[],
  body: string,
  end = "\r\n",
  first = "POST /v1/chat/completions HTTP/1.1",
) =>
  [
    first,
    "host: localhost",
    "authorization: Bearer KEY",
    "content-type: application/json",
    ...lines,
    "",
    "",
  ].join(end) + body;
const INSIDE = request([`content-length: ${HIDDEN.length}`], HIDDEN);

/** The second one is body in the first interpretation, and a request in the other. */
const twoWays = (name: string, ...lines: readonly string[]): SmuggledCase => ({
  name,
  text: request(
    [`content-length: ${"0\r\n\r\n".length + INSIDE.length}`, ...lines],
    `0\r\n\r\n${INSIDE}`,
  ),
});
/** Its length ends before the second one. */
const short = (name: string, ...lines: readonly string[]): SmuggledCase => ({
  name,
  text: request(lines, chunked(BODY) + INSIDE),
});
const plain = (name: string, text: string): SmuggledCase => ({ name, text });

const CODINGS = [
  "transfer-encoding: chunked",
  "Transfer-Encoding: CHUNKED",
  "transfer-encoding: chunked ",
  "transfer-encoding:\tchunked",
  "transfer-encoding : chunked",
  " transfer-encoding: chunked",
  "transfer-encoding: xchunked",
  "transfer-encoding: identity",
  "transfer-encoding: identity, chunked",
  "transfer-encoding: gzip, chunked",
  "transfer-encoding: chunked, identity",
  "transfer-encoding: chunked, chunked",
  'transfer-encoding: "chunked"',
  "transfer-encoding:\r\n chunked",
  "transfer-encoding: chunk\u00e9d",
  "transfer-encoding: chunked\r\ntransfer-encoding: identity",
  "transfer-encoding: identity\r\ntransfer-encoding: chunked",
  "transfer_encoding: chunked",
  "x: y\ntransfer-encoding: chunked",
  "x: y\rtransfer-encoding: chunked",
  "transfer-encoding\0: chunked",
  "transfer-encoding: \x0bchunked",
  "transfer-encoding:chunked;q=1",
] as const;
const LENGTHS = [
  "content-length: 0",
  "content-length: 5",
  "content-length: +5",
  "content-length: -1",
  "content-length: 5, 5",
  "content-length: 0x05",
  "content-length: 5 5",
  "content-length: 99999999999999999999",
  "content-length : 5",
  "content-length: 05\r\n ",
  "Content-Length: 5\r\nContent-Length: 6",
  'content-length: "5"',
  "content-length:",
] as const;
const SIZES = [
  "0;a=b",
  "00",
  "0x0",
  "-0",
  " 0",
  "0 ",
  "0\t",
  "0;\nx",
  "g",
  "ffffffffffffffff1",
] as const;

export const TABLE: readonly SmuggledCase[] = [
  {
    name: "two in a row",
    text: request([`content-length: ${BODY.length}`], BODY) + INSIDE,
    control: true,
  },
  {
    name: "two in a row, chunked",
    text: request(["transfer-encoding: chunked"], chunked(BODY)) + INSIDE,
    control: true,
  },
  ...CODINGS.map((line) => twoWays(`a length and ${JSON.stringify(line)}`, line)),
  ...LENGTHS.map((line) =>
    short(`chunks and ${JSON.stringify(line)}`, "transfer-encoding: chunked", line),
  ),
  ...SIZES.map((size) =>
    plain(
      `a chunk of the size ${JSON.stringify(size)}`,
      request(["transfer-encoding: chunked"], `${size}\r\n${INSIDE}\r\n0\r\n\r\n`),
    ),
  ),
  plain("lines that end in LF", request([`content-length: ${INSIDE.length}`], INSIDE, "\n")),
  plain(
    "a head that ends in CR LF LF",
    request(["x: y"], "", "\r\n").replace(/\r\n\r\n$/, "\r\n\n") + INSIDE,
  ),
  plain(
    "a length of HTTP/1.0",
    request(
      ["transfer-encoding: chunked"],
      `0\r\n\r\n${INSIDE}`,
      "\r\n",
      "POST /v1/chat/completions HTTP/1.0",
    ),
  ),
  plain(
    "a body of GET",
    request([`content-length: ${INSIDE.length}`], INSIDE, "\r\n", "GET /v1/models HTTP/1.1"),
  ),
  plain(
    "a body of HEAD",
    request([`content-length: ${INSIDE.length}`], INSIDE, "\r\n", "HEAD /v1/models HTTP/1.1"),
  ),
  plain(
    "a body of OPTIONS",
    request(
      [`content-length: ${INSIDE.length}`],
      INSIDE,
      "\r\n",
      "OPTIONS /v1/chat/completions HTTP/1.1",
    ),
  ),
  plain(
    "an upgrade",
    request(["connection: upgrade", "upgrade: h2c", `content-length: ${INSIDE.length}`], INSIDE),
  ),
  plain(
    "CONNECT",
    request([`content-length: ${INSIDE.length}`], INSIDE, "\r\n", "CONNECT localhost:80 HTTP/1.1"),
  ),
  plain(
    "an expectation that is not met",
    request(["expect: nothing", `content-length: ${INSIDE.length}`], INSIDE),
  ),
  plain("two hosts", request(["host: evil.test", `content-length: ${INSIDE.length}`], INSIDE)),
  plain(
    "no host",
    request([`content-length: ${INSIDE.length}`], INSIDE).replace("host: localhost\r\n", ""),
  ),
  plain(
    "another host in the target",
    request(
      [`content-length: ${INSIDE.length}`],
      INSIDE,
      "\r\n",
      "POST http://evil.test/v1/chat/completions HTTP/1.1",
    ),
  ),
  plain(
    "a line break in the target",
    request(
      [`content-length: ${INSIDE.length}`],
      INSIDE,
      "\r\n",
      `POST /v1/models\r\n\r\n${INSIDE} HTTP/1.1`,
    ).slice(0, 4_000),
  ),
];

/** Bytes received until it is silent or closed. */
function exchange(port: number, text: string, silentMs = SILENT_MS): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.from(text, "latin1")));
    const done = () => {
      socket.destroy();
      resolve(said);
    };
    socket.setTimeout(silentMs, done);
    socket.on("data", (bytes) => (said += bytes.toString("latin1")));
    socket.on("error", done).on("close", done);
  });
}

export async function smuggling(
  site: FuzzSite,
  say: (line: string) => void,
): Promise<{ wrong: string[]; played: number }> {
  const { daemon, up } = site;
  const port = Number(new URL(daemon.url).port);
  const wrong: string[] = [];
  let played = 0;
  const tripped = () => up.requests.filter(({ body }) => body.includes(TRIPWIRE)).length;
  for (const { name, text, control } of TABLE) {
    up.reset();
    const said = await exchange(
      port,
      text.replaceAll("KEY", daemon.key),
      control ? COMES_MS : SILENT_MS,
    );
    const answers = said.match(/HTTP\/1\.1 [2-5]\d\d /g)?.length ?? 0;
    played++;
    if (control ? tripped() !== 1 : tripped() > 0)
      wrong.push(`${name}: ${tripped()} came through; ${said.slice(0, 200)}`);
    if (!control && answers > 1) wrong.push(`${name}: ${answers} answers`);
  }
  for (const proxy of await proxies(port, say)) {
    await using through = proxy;
    const before = (await callsOf(daemon)).length;
    for (const { name, text } of TABLE) {
      up.reset();
      await exchange(through.port, text.replaceAll("KEY", daemon.key));
      const mine = await next(through.port, daemon.key);
      played++;
      if (mine !== undefined) wrong.push(`${through.name}: ${name}: the next client gets ${mine}`);
    }
    for (const problem of await unproxied(daemon, before))
      wrong.push(`${through.name}: ${problem}`);
  }
  return { wrong, played };
}

/** The next client on the same connection has its own response. */
async function next(port: number, key: string): Promise<string | undefined> {
  const res = await fetch(`http://127.0.0.1:${port}/v1/models?next`, {
    headers: { authorization: `Bearer ${key}` },
  }).catch(() => undefined);
  const said = await res?.text();
  return res?.status === 200 && said?.includes('"object":"list"')
    ? undefined
    : `${res?.status} ${said?.slice(0, 100)}`;
}

/**
 * Proxies mark what they forward, and replace an existing mark: a call without it was hidden in
 * another request.
 */
async function unproxied(daemon: Daemon, from: number): Promise<string[]> {
  const calls = await callsOf(daemon);
  return calls
    .slice(from)
    .filter(({ labels }) => labels["x-proxied"] === undefined)
    .map(({ request }) => `the call ${request} was hidden in another request`);
}

async function callsOf(daemon: Daemon): Promise<LedgerEntry[]> {
  const all: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = (await daemon.ask("ledger.entries", {
      ...(after !== undefined && { after }),
      limit: 1_000,
    })) as unknown as { items: LedgerEntry[]; next?: string };
    all.push(...page.items.filter(({ kind }) => kind === "reserve"));
    after = page.next;
  } while (after !== undefined);
  return all;
}
