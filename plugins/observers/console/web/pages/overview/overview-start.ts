// The overview of a gateway that has received no requests yet: the next steps.
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Box, Code } from "../../parts/basics.ts";
import { buildUrl } from "../../location.ts";

export function GettingStarted() {
  const { value } = useQuery<{ url: string }>("status");
  const url = value?.url ?? "http://127.0.0.1:8787";
  const curl = [
    `curl ${url}/v1/chat/completions \\`,
    `  -H 'authorization: Bearer <key>' -H 'content-type: application/json' \\`,
    `  -d '{"model":"demo/echo","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
  return html`<div class="grid">
    <${Box} title="Send a first request">
      <div class="stack">
        <p class="quiet">
          No request has been sent yet. Any OpenAI or Anthropic client works with this gateway: give
          it this address and a key.
        </p>
        <${Code} label="First request" text=${curl} />
      </div>
    <//>
    <${Box} title="Explore">
      <div class="stack tight">
        <p>
          <a href=${buildUrl("/playground")}>Call a model in the playground</a>
          <span class="quiet">with one of your keys.</span>
        </p>
        <p>
          <a href=${buildUrl("/requests")}>Watch requests</a>
          <span class="quiet">as they complete.</span>
        </p>
        <p>
          <a href=${buildUrl("/usage")}>See usage</a>
          <span class="quiet">by key, model, or label.</span>
        </p>
      </div>
    <//>
  </div>`;
}
