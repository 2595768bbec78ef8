// Adds TLS to a listener. The certificate files are watched. A new certificate is used from the
// next handshake on, and open connections stay.
import { readFile } from "node:fs/promises";
import type { RequestListener, Server } from "node:http";
import { createServer } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { ListenTls } from "../../config/sections/network-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { hashContent } from "../../lib/content-hash.ts";
import { fail, publicErrorText } from "../../model/error.ts";
import { watchFiles } from "../reload/config-watcher.ts";

/**
 * Cipher suites of TLS 1.2 with forward secrecy and authenticated encryption. All suites of TLS 1.3
 * have both properties.
 */
const CIPHERS = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** Time for a handshake, in milliseconds. This is the same time as for a request head. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Certificate and key are two files, which may be written one after the other. */
const MAX_READ_ATTEMPTS = 5;
const RETRY_DELAY_MS = 200;

/**
 * Loads the certificate and key.
 * @param configKey Key that names the files in gateway.yaml.
 */
export async function loadTlsContext(
  tls: ListenTls,
  configKey: string,
): Promise<SecureContextOptions> {
  const read = (path: string) =>
    readFile(path).catch((error: NodeJS.ErrnoException) =>
      fail("conflict", `Cannot read ${path} from ${configKey}: ${error.code}.`, {
        code: "tls_unreadable",
      }),
    );
  const options: SecureContextOptions = {
    cert: await read(tls.cert),
    key: await read(tls.key),
    minVersion: tls.minVersion,
    ciphers: CIPHERS,
    ...(tls.clientCertificates && { ca: await read(tls.clientCertificates.ca) }),
  };
  try {
    createSecureContext(options);
    return options;
  } catch (error) {
    return fail("conflict", `${configKey} cannot be used: ${(error as Error).message}`, {
      code: "tls_unusable",
    });
  }
}

/** Certificate, key, and options of a TLS server. */
export interface TlsSettings {
  readonly context: SecureContextOptions;
  readonly clientCertificates: ListenTls["clientCertificates"];
}

/**
 * Loads what a TLS server needs.
 * @param configKey Key that names the files in gateway.yaml.
 */
export const loadTlsSettings = async (tls: ListenTls, configKey: string): Promise<TlsSettings> => ({
  context: await loadTlsContext(tls, configKey),
  clientCertificates: tls.clientCertificates,
});

/** Context that each server started with. */
const initialContexts = new WeakMap<Server, SecureContextOptions>();

/** Creates a server that is not open yet. */
export function createTlsServer(
  { context, clientCertificates: clients }: TlsSettings,
  handler: RequestListener,
): Server {
  const server = createServer(
    {
      ...context,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      ALPNProtocols: ["http/1.1"],
      requestCert: clients !== undefined,
      rejectUnauthorized: clients?.required ?? false,
    },
    handler,
  ) as unknown as Server;
  initialContexts.set(server, context);
  return server;
}

/** Watches the certificate files until the server is closed. */
export function watchCertificate(
  server: Server,
  tls: ListenTls,
  { key, log }: { key: string; log: Log },
) {
  const { cert, key: secret, ca } = initialContexts.get(server)!;
  const read = new Map([
    [tls.cert, cert],
    [tls.key, secret],
    ...(tls.clientCertificates ? [[tls.clientCertificates.ca, ca] as const] : []),
  ]);
  const files = [...read.keys()];
  const closed = new AbortController();
  const changed = async () => {
    for (let tries = MAX_READ_ATTEMPTS; ; tries--) {
      try {
        const context = await loadTlsContext(tls, key);
        (
          server as unknown as { setSecureContext(of: SecureContextOptions): void }
        ).setSecureContext(context);
        log.info({ files }, "certificate reloaded");
        return;
      } catch (error) {
        if (closed.signal.aborted) return;
        if (tries <= 1) {
          log.error({ error: publicErrorText(error) }, "certificate rejected, previous one kept");
          return;
        }
        await sleep(RETRY_DELAY_MS, undefined, { ref: false });
      }
    }
  };
  const watched = watchFiles({
    listFiles: () => files,
    hashOf: (file) => hashContent(read.get(file) as Buffer),
    onChange: changed,
    onError: (err) => log.error({ err }, "watching certificate files failed"),
  });
  server.once("close", () => {
    closed.abort();
    void watched[Symbol.asyncDispose]();
  });
}
