// Observes the requests that start a video, to know whether the provider can have started it.
import { getFault, type BatchClient } from "tollgate/plugin";

/** Codes of errors before a request is sent. Codes that start with `address_` are others. */
const UNSENT_CODES: ReadonlySet<string> = new Set(["connect_failed", "tls_failed"]);

/** The requests of one call of `create`. */
export class Submission {
  #requests = 0;
  #refused = 0;

  /** Whether no request was accepted: each had an answer with an error status, or was not sent. */
  get isRefused(): boolean {
    return this.#requests > 0 && this.#refused === this.#requests;
  }

  /** Returns a client whose requests are observed. */
  observe(client: BatchClient): BatchClient {
    return {
      ...client,
      fetch: async (to, init) => {
        this.#requests++;
        try {
          const response = await client.fetch(to, init);
          if (response.status >= 300) this.#refused++;
          return response;
        } catch (error) {
          if (isUnsent(error)) this.#refused++;
          throw error;
        }
      },
    };
  }
}

function isUnsent(error: unknown): boolean {
  const code = getFault(error)?.code ?? "";
  return UNSENT_CODES.has(code) || code.startsWith("address_");
}
