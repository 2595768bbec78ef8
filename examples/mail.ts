// examples/mail.ts
// Alerts as e-mail, by the sendmail of the machine: postfix, msmtp and their like bring one. For a service with an HTTP interface
// ctx.fetch does the same.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { defineObserver, type GatewayEvent } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "mail",
  summary: "E-mail when a budget is crossed or the ledger takes no rows",
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["to", "from"],
    properties: {
      to: { type: "string", pattern: "^[^\\s,@]+@[^\\s,@]+$", description: "Whose mail it is" },
      from: { type: "string", pattern: "^[^\\s,@]+@[^\\s,@]+$", description: "Whose name it has" },
      sendmail: { type: "string", default: "/usr/sbin/sendmail", description: "The program" },
    },
  },
  setup({ to, from, sendmail }, ctx) {
    return {
      // What it throws is in the log. A crossed budget is taken for told when this resolves.
      async onEvent(notice) {
        const subject = subjectOf(notice);
        if (subject === undefined) return;
        const mail = spawn(sendmail, ["-i", "-f", from, to], {
          stdio: ["pipe", "ignore", "ignore"],
        });
        mail.stdin.on("error", () => {});
        mail.stdin.end(
          `From: ${from}\nTo: ${to}\nSubject: ${subject}\n\n${subject}, at ${new Date(notice.at).toISOString()}.\n`,
        );
        const [code] = await once(mail, "close");
        if (code !== 0) throw new Error(`${sendmail} has ended with ${String(code)}.`);
        ctx.log.info({ subject }, "sent");
      },
    };
  },
});

/** Undefined: nothing to write about. An account's name is an operator's text: it may not begin a line of its own. */
function subjectOf(notice: GatewayEvent): string | undefined {
  if (notice.type === "ledger" && !notice.ok) return "The ledger takes no rows";
  if (notice.type !== "budget_threshold_reached") return undefined;
  return `${notice.scope.replace(/\s/g, " ")} has used ${notice.percent} % of its limit`;
}
