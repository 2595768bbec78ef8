// Reads when the certificates of the gateway's own listeners expire, from the current files. A
// renewed file is used from the next handshake on.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import type { CertificateStats } from "../../plugin/gateway-stats.ts";

const PEM_CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END [A-Z0-9 ]+-----/g;
/** Minimum time between two reads of a certificate file, in milliseconds. */
const CACHE_TTL_MS = 60_000;

export async function readCertificates(path: string): Promise<readonly X509Certificate[]> {
  const found = (await readFile(path, "latin1")).match(PEM_CERTIFICATE);
  if (!found) return fail("conflict", `${path} has no certificate`);
  return found.map((pem) => new X509Certificate(pem));
}

/** Returns the certificate files by the gateway.yaml key that names them. */
function certificateFilesOf({ listen, admin }: Pick<GatewayConfig, "listen" | "admin">) {
  const named = (i: number) => (listen.length === 1 ? "listen.tls" : `listen[${i}].tls`);
  const files = listen.flatMap(({ tls }, i) =>
    tls
      ? [
          [named(i), tls.cert] as const,
          ...(tls.clientCertificates
            ? [[`${named(i)}.client_certificates`, tls.clientCertificates.ca] as const]
            : []),
        ]
      : [],
  );
  return admin?.tls ? [...files, ["admin.tls", admin.tls.cert] as const] : files;
}

/**
 * Returns the certificate of a file that expires first. If the file is unreadable, returns nothing,
 * because the listener keeps its previous certificate.
 */
async function readCertificateStats([listener, file]: readonly [string, string]): Promise<
  readonly CertificateStats[]
> {
  const all = await readCertificates(file).catch(() => []);
  const ends = all.map(({ validTo }) => Date.parse(validTo)).filter((at) => !Number.isNaN(at));
  return ends.length === 0 ? [] : [{ listener, expiresAt: Math.min(...ends) }];
}

/** Returns a function that reads the certificates on demand and caches the result for 1 minute. */
export function createCertificateReader(
  config: () => Pick<GatewayConfig, "listen" | "admin">,
): () => Promise<readonly CertificateStats[]> {
  let cached: Promise<readonly CertificateStats[]> | undefined;
  let readAt = 0;
  return () => {
    if (cached && performance.now() - readAt < CACHE_TTL_MS) return cached;
    readAt = performance.now();
    return (cached = Promise.all(certificateFilesOf(config()).map(readCertificateStats)).then(
      (all) => all.flat(),
    ));
  };
}
