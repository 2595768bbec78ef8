// The pages on which a person approves a device. They work without scripts, load nothing from
// elsewhere, and cannot be shown in a frame.
import { createHash } from "node:crypto";
import type { RouteResponse } from "tollgate/plugin";

const STYLE = `
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 26rem; margin: 12vh auto; padding: 0 1rem; line-height: 1.5; }
h1 { font-size: 1.4rem; }
code, input { font: 1.4rem ui-monospace, monospace; letter-spacing: 0.1em; }
input { width: 100%; box-sizing: border-box; padding: 0.5rem; text-transform: uppercase; }
button { font: inherit; padding: 0.6rem 1.2rem; margin: 1rem 0.5rem 0 0; }
[role="alert"] { border-left: 0.3rem solid #c62828; padding-left: 0.7rem; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);

function page(
  title: string,
  content: string,
  { status = 200, cookie }: { status?: number; cookie?: string | undefined } = {},
): RouteResponse {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
<main>
<h1>${escapeHtml(title)}</h1>
${content}
</main>
</html>
`;
  return {
    status,
    body: Buffer.from(html),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": POLICY,
      // With "no-referrer", browsers would send the forms of these pages with `Origin: null`.
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      ...(cookie !== undefined && { "set-cookie": cookie }),
    },
  };
}

/** Form for the user code. A code in the URL is only filled in, never submitted. */
export const codePage = (code: string, problem?: string, status?: number): RouteResponse =>
  page(
    "Sign in to a device",
    `${problem === undefined ? "" : `<p role="alert">${escapeHtml(problem)}</p>`}
<p>Enter the code that your terminal shows. Continue only if you started the sign-in yourself.</p>
<form method="post" action="/device">
<input name="user_code" value="${escapeHtml(code)}" maxlength="40" autocomplete="off" autocapitalize="characters" spellcheck="false" aria-label="Code" required autofocus>
<button>Continue</button>
</form>`,
    { ...(status !== undefined && { status }) },
  );

/** Question whether the person signs in the device. */
export const approvalPage = (of: {
  readonly name: string;
  readonly userCode: string;
  readonly address: string;
  readonly surface: string | undefined;
}): RouteResponse =>
  page(
    "Approve this device?",
    `<p>You are <strong>${escapeHtml(of.name)}</strong>.</p>
<p>A device at the address ${escapeHtml(of.address)} requests access${
      of.surface === undefined ? "" : ` for ${escapeHtml(of.surface)}`
    }. Approve it only if your terminal shows this code:</p>
<p><code>${escapeHtml(of.userCode)}</code></p>
<form method="post" action="/device/approve"><button>Approve</button></form>
<form method="post" action="/device/deny"><button>Deny</button></form>`,
  );

/** A message at the end. */
export const messagePage = (
  title: string,
  text: string,
  more?: { status?: number; cookie?: string | undefined },
): RouteResponse => page(title, `<p>${escapeHtml(text)}</p>`, more);
