// Reads the TLS client certificate of a connection. It is read once per connection, and only if a
// plugin uses it.
import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { ClientCertificate } from "../../plugin/exchange.ts";

type MaybeTlsSocket = Socket & { authorized?: boolean; getPeerX509Certificate?(): X509Certificate };

const known = new WeakMap<Socket, ClientCertificate>();

const NAME_TYPES = new Set(["DNS", "URI", "email"]);
const MAX_NAMES = 64;
const MAX_ALT_NAME_LENGTH = 16_384;

export function certificateOf(socket: MaybeTlsSocket): ClientCertificate | undefined {
  // Node sets `authorized` only if a certificate authority that the operator trusts signed the
  // certificate.
  if (socket.authorized !== true) return undefined;
  const before = known.get(socket);
  if (before) return before;
  const peer = socket.getPeerX509Certificate?.();
  if (!peer) return undefined;
  const certificate: ClientCertificate = {
    names: parseSubjectAltName((peer.subjectAltName ?? "").slice(0, MAX_ALT_NAME_LENGTH)),
    commonName: /^CN=(.+)$/m.exec(peer.subject)?.[1],
    fingerprint: peer.fingerprint256.replaceAll(":", "").toLowerCase(),
    expiresAt: Date.parse(peer.validTo),
  };
  known.set(socket, certificate);
  return certificate;
}

/**
 * Parses a subject alternative name as OpenSSL formats it. Ambiguous values are quoted:
 * `DNS:a.test, URI:"spiffe://a, b"`.
 */
export function parseSubjectAltName(alternative: string): string[] {
  const names: string[] = [];
  const each = /([^:,"]*):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;
  for (const [, type = "", text = ""] of alternative.matchAll(each)) {
    if (names.length >= MAX_NAMES) break;
    if (!NAME_TYPES.has(type) || text === "") continue;
    const name = text.startsWith('"') ? unquote(text) : text;
    if (name !== undefined) names.push(type === "URI" ? name : name.toLowerCase());
  }
  return names;
}

function unquote(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
