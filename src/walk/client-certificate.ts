// What a client has proved of itself when its connection began. Read once a connection, and only where a plugin asks.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { ClientCertificate } from "../plugin/exchange.ts";

type Secured = Socket & { authorized?: boolean; getPeerX509Certificate?(): X509Certificate };

const known = new WeakMap<Socket, ClientCertificate>();

const KINDS = new Set(["DNS", "URI", "email"]);
const MOST_NAMES = 64;
const LONGEST = 16_384;

export function certificateOf(socket: Secured): ClientCertificate | undefined {
  // An authority that the operator trusts has signed it: Node says so of no other.
  if (socket.authorized !== true) return undefined;
  const before = known.get(socket);
  if (before) return before;
  const peer = socket.getPeerX509Certificate?.();
  if (!peer) return undefined;
  const certificate: ClientCertificate = {
    names: namesIn((peer.subjectAltName ?? "").slice(0, LONGEST)),
    commonName: /^CN=(.+)$/m.exec(peer.subject)?.[1],
    fingerprint: peer.fingerprint256.replaceAll(":", "").toLowerCase(),
    until: Date.parse(peer.validTo),
  };
  known.set(socket, certificate);
  return certificate;
}

/** As OpenSSL writes them, which quotes what could be taken for something else: `DNS:a.test, URI:"spiffe://a, b"`. */
export function namesIn(alternative: string): string[] {
  const names: string[] = [];
  const each = /([^:,"]*):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;
  for (const [, kind = "", said = ""] of alternative.matchAll(each)) {
    if (names.length >= MOST_NAMES) break;
    if (!KINDS.has(kind) || said === "") continue;
    const name = said.startsWith('"') ? unquoted(said) : said;
    if (name !== undefined) names.push(kind === "URI" ? name : name.toLowerCase());
  }
  return names;
}

function unquoted(said: string): string | undefined {
  try {
    return JSON.parse(said) as string;
  } catch {
    return undefined;
  }
}
