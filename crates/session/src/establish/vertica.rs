//! How a client of Vertica proves who it is (`reference/vertica-wire.md` §2).

use std::sync::Arc;

use rand::Rng;
use switchyard_catalog::{Secret, User, Verifiers};
use switchyard_wire::verifier::MockSecret;
use switchyard_wire::vertica::authentication::{self, PASSWORD_BYTES_MAX};
use switchyard_wire::{Md5Verifier, ScramVerifier, Sha512Verifier};
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
    /// By MD5, for those whose security algorithm it is.
    Md5(Md5Verifier),
    /// The password itself, through TLS, since only a verifier for PostgreSQL's clients is kept.
    Password(ScramVerifier),
}

/// Has the client prove that it knows the user's password. Users that cannot log in so are taken through the same steps
/// as others, and are told the same at the end.
pub(super) async fn prove<S>(
    connection: &mut Connection<S>,
    user: Result<Arc<User>, PasswordFailure>,
    md5: bool,
    login: &Login<'_>,
    context: &Context,
) -> Result<Arc<User>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let genuine = user.and_then(|user| {
        let verifiers = user.verifiers.as_ref().ok_or(PasswordFailure::PasswordUnset)?;
        let md5 = verifiers.md5.as_ref().filter(|_| md5 && user.limits.wants_md5());
        let proof = proof(verifiers, md5, login.channel.is_some())?;
        Ok((user, proof))
    });
    let (user, proof) = match genuine {
        Ok((user, proof)) => (Ok(user), proof),
        Err(why) => (Err(why), mock(&context.mock_secret, login.user_name, md5)),
    };
    let by_name = matches!(proof, Proof::Md5(_));
    let proven = match proof {
        Proof::Sha512(verifier) => {
            let mut session_salt = [0; 4];
            rand::rng().fill_bytes(&mut session_salt);
            authentication::sha512(connection.out(), session_salt, verifier.salt());
            verifier.accepts(session_salt, &answer(connection).await?)
        }
        Proof::Md5(verifier) => {
            let mut session_salt = [0; 4];
            rand::rng().fill_bytes(&mut session_salt);
            authentication::md5(connection.out(), session_salt);
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
    match (proven, by_name) {
        (true, _) => Ok(user),
        (false, true) if user.name.as_str() != login.user_name => {
            Err(refused(PasswordFailure::SpelledOtherwise(user.name.clone())))
        }
        (false, _) => Err(refused(PasswordFailure::PasswordWrong)),
    }
}

/// What a user who cannot log in is asked for. Names are alike in any case, and so must be what an unknown one is shown.
fn mock(secret: &MockSecret, user: &str, md5: bool) -> Proof {
    let user = user.to_lowercase();
    if md5 && secret.chooses_md5(&user) {
        return Proof::Md5(Md5Verifier::mock(secret, &user));
    }
    Proof::Sha512(Sha512Verifier::mock(secret, &user))
}

fn proof(verifiers: &Verifiers, md5: Option<&Secret>, tls: bool) -> Result<Proof, PasswordFailure> {
    if let Some(md5) = md5 {
        return Md5Verifier::parse(md5.reveal()).map(Proof::Md5).map_err(|_| PasswordFailure::VerifierDamaged);
    }
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
