// When the certificates of the gateway's own listeners expire, as their files say it now: a renewed file is used from the next handshake on.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { GatewayConfig } from "../../config/types.ts";
import { fail } from "../../model/error.ts";
import type { CertificateReading } from "../../plugin/readings.ts";

const PEM = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END [A-Z0-9 ]+-----/g;
/** A certificate's file is read no more often. */
const EVERY_MS = 60_000;

export async function certificatesIn(path: string): Promise<readonly X509Certificate[]> {
  const found = (await readFile(path, "latin1")).match(PEM);
  if (!found) return fail("conflict", `${path} has no certificate`);
  return found.map((pem) => new X509Certificate(pem));
}

/** Every file of certificates, by the key of gateway.yaml that names it. */
function filesOf({ listen, admin }: Pick<GatewayConfig, "listen" | "admin">) {
  const named = (i: number) => (listen.length === 1 ? "listen.tls" : `listen[${i}].tls`);
  const files = listen.flatMap(({ tls }, i) =>
    tls
      ? [
          [named(i), tls.cert] as const,
          ...(tls.clients ? [[`${named(i)}.clients`, tls.clients.ca] as const] : []),
        ]
      : [],
  );
  return admin?.tls ? [...files, ["admin.tls", admin.tls.cert] as const] : files;
}

/** The first of a file to expire. A file that cannot be read says nothing: its listener goes on with what it read before. */
async function readingOf([listener, file]: readonly [string, string]): Promise<
  readonly CertificateReading[]
> {
  const all = await certificatesIn(file).catch(() => []);
  const ends = all.map(({ validTo }) => Date.parse(validTo)).filter((at) => !Number.isNaN(at));
  return ends.length === 0 ? [] : [{ listener, expiresAt: Math.min(...ends) }];
}

/** Read when asked for, and kept for a minute. */
export function certificateReader(
  config: () => Pick<GatewayConfig, "listen" | "admin">,
): () => Promise<readonly CertificateReading[]> {
  let kept: Promise<readonly CertificateReading[]> | undefined;
  let readAt = 0;
  return () => {
    if (kept && performance.now() - readAt < EVERY_MS) return kept;
    readAt = performance.now();
    return (kept = Promise.all(filesOf(config()).map(readingOf)).then((all) => all.flat()));
  };
}
