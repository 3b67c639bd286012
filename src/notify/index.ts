export type { ApprovalNotification, IncompleteNotification, Notification, Notifier } from "../core/notification.ts";
export { type CommandNotifierOptions, commandNotifier } from "./command-notifier.ts";
export { consoleNotifier } from "./console-notifier.ts";
export { fileNotifier } from "./file-notifier.ts";
export { type WebhookNotifierOptions, webhookNotifier } from "./webhook-notifier.ts";
export { signWebhook } from "./webhook-signature.ts";
