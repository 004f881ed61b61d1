use sayso::wire::{self, StoredEvent};
use sayso_core::event::EventBody;
use sayso_core::json::visible;

use super::round::{asker, headline, kind};

/// An event of a round as one line; none for those that another line says already. `round` is the round, where the
/// event alone does not say enough.
pub fn event(event: &StoredEvent, round: Option<&wire::Round>) -> Option<String> {
    if let (EventBody::Approval { approved, decided_by, tool: Some(tool), .. }, None) = (&event.body, event.round_id) {
        let (what, tool, rule) =
            (if *approved { "allowed " } else { "denied  " }, visible(tool), visible(&decided_by.name));
        return Some(format!("{}  {what}  {tool} for {} by the policy: {rule}", event.at, who(event)));
    }
    let id = event.round_id?;
    let what = match &event.body {
        EventBody::RoundCreated => {
            let round = round?;
            format!("asked     {}  {}  {}", kind(round), asker(round), headline(round))
        }
        EventBody::Answered => format!("answered  by {}", by(event)),
        EventBody::ResponseRefused { code } => format!("refused   an answer by {}: {}", by(event), visible(code)),
        EventBody::Resolved => "resolved  the agent has gone on".to_owned(),
        EventBody::Failed { code } => {
            let message = round.and_then(|round| round.failure.as_ref()).map(|failure| failure.message.as_str());
            format!("ended     {}: {}", visible(code), visible(message.unwrap_or_default()))
        }
        EventBody::UrlCompleted => "visited   says the asker".to_owned(),
        EventBody::ExecutionCreated
        | EventBody::ExecutionState { .. }
        | EventBody::Approval { .. }
        | EventBody::Input { .. }
        | EventBody::GrantAdded { .. }
        | EventBody::GrantUsed { .. }
        | EventBody::GrantRevoked { .. }
        | EventBody::TokenAdded { .. }
        | EventBody::TokenRevoked { .. } => return None,
    };
    Some(format!("{}  {id}  {what}", event.at))
}

fn who(event: &StoredEvent) -> String {
    let who = event.principal.as_ref().map_or_else(|| "somebody".to_owned(), ToString::to_string);
    visible(&who).into_owned()
}

fn by(event: &StoredEvent) -> String {
    let through = event.channel.map_or("", |channel| channel.as_str());
    format!("{} through {through}", who(event))
}
