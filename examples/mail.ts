// examples/mail.ts
// Sends alerts by email with the sendmail program, which postfix, msmtp, and similar packages provide. For an HTTP service, use
// ctx.fetch instead.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { defineObserver, type GatewayEvent } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "mail",
  summary: "Sends email when a budget reaches a threshold or the ledger accepts no rows",
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["to", "from"],
    properties: {
      to: {
        type: "string",
        pattern: "^[^\\s,@]+@[^\\s,@]+$",
        description: "Address of the recipient",
      },
      from: {
        type: "string",
        pattern: "^[^\\s,@]+@[^\\s,@]+$",
        description: "Address of the sender",
      },
      sendmail: {
        type: "string",
        default: "/usr/sbin/sendmail",
        description: "Path of the sendmail program",
      },
    },
  },
  setup({ to, from, sendmail }, ctx) {
    return {
      // Errors are logged. A budget threshold counts as delivered when this promise resolves.
      async onEvent(event) {
        const subject = subjectOf(event);
        if (subject === undefined) return;
        const mail = spawn(sendmail, ["-i", "-f", from, to], {
          stdio: ["pipe", "ignore", "ignore"],
        });
        mail.stdin.on("error", () => {});
        mail.stdin.end(
          `From: ${from}\nTo: ${to}\nSubject: ${subject}\n\n${subject}, at ${new Date(event.at).toISOString()}.\n`,
        );
        const [code] = await once(mail, "close");
        if (code !== 0) throw new Error(`${sendmail} exited with ${String(code)}.`);
        ctx.log.info({ subject }, "mail sent");
      },
    };
  },
});

/** Returns undefined if there is nothing to send. Replaces line breaks in names, which could add mail headers. */
function subjectOf(event: GatewayEvent): string | undefined {
  if (event.type === "ledger" && !event.ok) return "The ledger accepts no rows";
  if (event.type !== "budget_threshold_reached") return undefined;
  return `${event.scope.replace(/\s/g, " ")} has used ${event.percent}% of its limit`;
}
