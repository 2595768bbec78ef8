// When the certificates of the gateway's own listeners expire, as their files say it now: a renewed file is used from the next handshake on.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import type { CertificateStats } from "../../plugin/gateway-stats.ts";

const PEM_CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END [A-Z0-9 ]+-----/g;
/** A certificate's file is read no more often. */
const CACHE_TTL_MS = 60_000;

export async function readCertificates(path: string): Promise<readonly X509Certificate[]> {
  const found = (await readFile(path, "latin1")).match(PEM_CERTIFICATE);
  if (!found) return fail("conflict", `${path} has no certificate`);
  return found.map((pem) => new X509Certificate(pem));
}

/** Every file of certificates, by the key of gateway.yaml that names it. */
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

/** The first of a file to expire. A file that cannot be read says nothing: its listener goes on with what it read before. */
async function readCertificateStats([listener, file]: readonly [string, string]): Promise<
  readonly CertificateStats[]
> {
  const all = await readCertificates(file).catch(() => []);
  const ends = all.map(({ validTo }) => Date.parse(validTo)).filter((at) => !Number.isNaN(at));
  return ends.length === 0 ? [] : [{ listener, expiresAt: Math.min(...ends) }];
}

/** Read when asked for, and kept for a minute. */
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
