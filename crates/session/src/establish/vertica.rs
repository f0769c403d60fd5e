//! How a client of Vertica proves who it is (`reference/vertica-wire.md` §2).

use std::sync::Arc;

use rand::Rng;
use switchyard_catalog::{User, Verifiers};
use switchyard_wire::vertica::authentication::{self, PASSWORD_BYTES_MAX};
use switchyard_wire::{ScramVerifier, Sha512Verifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

use super::{Context, Login};
use crate::connection::Connection;
use crate::error::{PasswordFailure, SessionError};

/// The most iterations that are made for a password sent as it is: in PostgreSQL's protocol it is the client who makes
/// them.
const ITERATIONS_MAX: u32 = 100_000;

/// What a client is asked for.
enum Proof {
    /// By SHA512.
    Sha512(Sha512Verifier),
    /// The password itself, through TLS, since only a verifier for PostgreSQL's clients is kept.
    Password(ScramVerifier),
}

/// Has the client prove that it knows the user's password. Users that cannot log in so are taken through the same steps
/// as others, and are told the same at the end.
pub(super) async fn prove<S>(
    connection: &mut Connection<S>,
    user: Result<Arc<User>, PasswordFailure>,
    login: &Login<'_>,
    context: &Context,
) -> Result<Arc<User>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let genuine = user.and_then(|user| {
        let verifiers = user.verifiers.as_ref().ok_or(PasswordFailure::PasswordUnset)?;
        let proof = proof(verifiers, login.channel.is_some())?;
        Ok((user, proof))
    });
    let (user, proof) = match genuine {
        Ok((user, proof)) => (Ok(user), proof),
        Err(why) => {
            // Names are alike in any case, and so must be what an unknown one is shown.
            let mock = Sha512Verifier::mock(&context.mock_secret, &login.user_name.to_lowercase());
            (Err(why), Proof::Sha512(mock))
        }
    };
    let proven = match proof {
        Proof::Sha512(verifier) => {
            let mut session_salt = [0; 4];
            rand::rng().fill_bytes(&mut session_salt);
            authentication::sha512(connection.out(), session_salt, verifier.salt());
            verifier.accepts(session_salt, &answer(connection).await?)
        }
        Proof::Password(verifier) => {
            authentication::cleartext(connection.out());
            fits(verifier, answer(connection).await?).await
        }
    };
    let refused = |why| SessionError::Password { user: login.user_name.to_owned(), why };
    // No answer fits a mock, but this does not depend on it.
    let user = user.map_err(refused)?;
    if proven { Ok(user) } else { Err(refused(PasswordFailure::PasswordWrong)) }
}

fn proof(verifiers: &Verifiers, tls: bool) -> Result<Proof, PasswordFailure> {
    let (scram, sha512) = (verifiers.scram.reveal(), verifiers.sha512.reveal());
    if !sha512.is_empty() {
        return Sha512Verifier::parse(sha512).map(Proof::Sha512).map_err(|_| PasswordFailure::VerifierDamaged);
    }
    let scram = ScramVerifier::parse(scram).map_err(|_| PasswordFailure::VerifierDamaged)?;
    if tls && scram.iterations() <= ITERATIONS_MAX {
        Ok(Proof::Password(scram))
    } else {
        Err(PasswordFailure::VerifierOfAnotherKind)
    }
}

async fn answer<S>(connection: &mut Connection<S>) -> Result<Zeroizing<Vec<u8>>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    connection.flush().await?;
    let body = match connection.message(b'p', PASSWORD_BYTES_MAX).await {
        Err(SessionError::MessageUnexpected(kind)) => return Err(SessionError::PasswordExpected(kind)),
        body => body?,
    };
    Ok(Zeroizing::new(authentication::password(&body)?.to_vec()))
}

/// Whether it is the password; that takes thousands of hashes, during which others are served.
async fn fits(verifier: ScramVerifier, password: Zeroizing<Vec<u8>>) -> bool {
    let fits = move || std::str::from_utf8(&password).is_ok_and(|password| verifier.fits(password));
    spawn_blocking(fits).await.unwrap_or(false)
}
